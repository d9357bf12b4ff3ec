"""Profiles that users wrote: resolved to what is to be applied."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile
from bellhop.api.stage_profile import StageProfile
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog, cluster_object
from bellhop.catalog.dependencies import line, refuse_cycle
from bellhop.errors import PermanentError, StaleError
from bellhop.extras.roles.manifests import with_account
from bellhop.gotemplate import Limits
from bellhop.profiles.drafts import complete_draft, fail_draft
from bellhop.profiles.stage_releases import StageReleases, release_of
from bellhop.profiles.writer import Found, Writer
from bellhop.rendering.allow_limits import refuse_rendered
from bellhop.rendering.check_jobs import job_contents
from bellhop.rendering.inputs import Find, Inputs
from bellhop.rendering.own_contents import OwnRefs, own_contents, own_patches
from bellhop.settings import Settings
from bellhop.state.concurrency import until_settled
from bellhop.state.content import Content
from bellhop.state.event_recorder import Note, noting
from bellhop.state.messages import Promote, Publisher, Resolve
from bellhop.state.profile import Profile
from bellhop.state.records import Records


class Resolution:
    """Writes users' own profiles as they are declared."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        writer: Writer,
        settings: Settings,
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._catalogs = catalogs
        self._writer = writer
        self.find = writer.holder
        self._stages = StageReleases(records, writer.holder)
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)

    def resolve(self, message: Resolve) -> None:
        """Write one profile as it was declared last, and request its clusters to apply it.

        Those that it comes after are made so before it: of what changes together with them its
        clusters are to have theirs first. So are those that it exchanges objects with, unless they
        are up to date: none of them is to leave a cluster before the others are known to come.

        Raises:
            StaleError: other writers keep winning.
        """
        catalog = self._catalogs.current()
        exchanged = catalog.exchanged(message.profile)
        places = (*(x for x in exchanged if not self._is_up_to_date(catalog, x)), message.profile)
        lines = chain.from_iterable(line(each, catalog.after) for each in places)
        for place in dict.fromkeys(lines):
            self._resolve(replace(message, profile=place))

    def _is_up_to_date(self, catalog: Catalog, place: str) -> bool:
        """Return whether it is a stage's profile with the release and clusters that are its own."""
        declared = catalog.profiles.get(place)
        if not isinstance(declared, StageProfile) or declared.paused:
            return False
        kept = self._records.profiles.head("", "", place)
        return (
            kept is not None
            and kept.value.told
            and not kept.value.error
            and kept.value.rollout.release == self._stages.find_release(declared)
            and set(kept.value.destinations) == set(catalog.profile_destinations(declared))
        )

    @until_settled("resolve '{message.profile}'")
    def _resolve(self, message: Resolve) -> bool:
        # Before the catalog: see `note_endings`.
        found = self._writer.found("", "", message.profile)
        catalog = self._catalogs.current()
        declared = catalog.profiles.get(message.profile)
        with noting(self._records, message, "", "") as note:
            note.context = {"profile": message.profile}
            if declared is None and found and not self._stages.may_leave(catalog, found.value):
                made = True
            elif declared is None:
                made = self._writer.withdraw(found, message, note, None, catalog)
            elif declared.paused:
                made = self._pause(found, note)
            elif isinstance(declared, StageProfile):
                made = self._resolve_stage(catalog, declared, found, message, note)
            else:
                draft = self.render(catalog, declared, self._writer.holder)
                draft = self._ordered(catalog, draft, found)
                made = self._writer.write(found, draft, message, note)
        return made and self._catalogs.current().revision == catalog.revision

    def _resolve_stage(
        self,
        catalog: Catalog,
        declared: StageProfile,
        found: Found,
        message: Resolve,
        note: Note,
    ) -> bool:
        """Write the profile of a stage with its release; False if another writer was quicker.

        A stage without a release has none, nor has one that is not verified now.
        """
        release = self._stages.find_release(declared)
        if release is None:
            # It stays as it is until the state of its promotion is computed.
            return True
        if not release:
            if declared.leads:
                # A release may have waited for what has changed.
                self._publisher.publish([Promote(declared.stage.promotion)])
            return self._writer.withdraw(found, message, note, declared, catalog)
        draft = self._ordered(catalog, self.render_release(catalog, declared, release), found)
        made = self._writer.write(found, draft, message, note)
        now = self._stages.find_stage(declared)
        if now and not now.is_settled:
            # Without clusters, or if its release cannot be rendered, it has no status to wait for.
            self._publisher.publish([Promote(declared.stage.promotion)])
        return made and (now is None or release_of(declared, now) == release)

    def render_release(self, catalog: Catalog, declared: StageProfile, release: int) -> Profile:
        """Return the draft of a stage's profile as a release has it.

        Raises:
            MissingError: the release is lost.
        """
        frozen = self._stages.freeze(catalog, declared, release)
        draft = self.render(catalog, frozen.profile, frozen.find)
        rollout = replace(
            draft.rollout,
            promotion=declared.stage.promotion,
            release=release,
            leads=declared.leads,
        )
        return replace(draft, rollout=rollout)

    def _pause(self, found: Found, note: Note) -> bool:
        """Mark a profile as paused, and nothing else; False if another writer was quicker."""
        if found is None or found.value.paused:
            return True
        try:
            paused = replace(found.value, paused=True)
            self._records.profiles.put_head(paused, expect=found.token)
        except StaleError:
            return False
        note.what = "paused"
        return True

    def _ordered(self, catalog: Catalog, draft: Profile, found: Found) -> Profile:
        """Return a profile that knows who comes after it, or an error if it does so itself.

        Others may have depended on it once: it still looks for them when it is withdrawn.
        """
        once = found is not None and found.value.rollout.awaited
        try:
            refuse_cycle(draft.name, catalog.after)
        except PermanentError as error:
            return fail_draft(replace(draft, rollout=replace(draft.rollout, after=())), error)
        awaited = once or draft.name in catalog.awaited
        return replace(draft, rollout=replace(draft.rollout, awaited=awaited))

    def render(self, catalog: Catalog, declared: ClusterProfile, find: Find) -> Profile:
        """Return the draft of a profile from the ConfigMaps and Secrets that `find` reads."""
        destinations = catalog.profile_destinations(declared)
        draft = Profile.draft(declared.policy, declared.rule, destinations)
        inputs = Inputs(find, declared)
        try:
            jobs = job_contents(declared.checks, inputs.find)
            draft = replace(draft, jobs=jobs)
            clusters = [cluster_object(catalog.clusters[key]) for key in draft.destinations]
            own = OwnRefs(clusters, inputs.find, self._limits)
            contents = own_contents(declared.policy_refs, own, declared.refs_field)
            patches = own_patches(declared.patch_refs, own)
            addons = _addons(declared, own)
            contents = tuple(each.with_patches(patches) for each in (*contents, *addons))
            if declared.grants:
                contents = with_account(contents, declared.grants)
            refuse_rendered(declared, contents)
        except PermanentError as error:
            return fail_draft(draft, error)
        draft = replace(draft, reads=declared.readings, recipe=inputs.noted)
        return complete_draft(draft, contents)


def _addons(declared: ClusterProfile, own: OwnRefs) -> Iterator[Content]:
    """Yield the charts and kustomizations of a profile, as they are written.

    Raises:
        PermanentError: something that they need is missing.
    """
    if not (declared.charts or declared.kustomizations):
        return
    # Most users have neither, and a cold function is not to load what reads them.
    from bellhop.rendering.charts.contents import own_charts  # noqa: PLC0415
    from bellhop.rendering.kustomizations.contents import own_kustomizations  # noqa: PLC0415

    yield from own_charts(declared.charts, own)
    yield from own_kustomizations(declared.kustomizations, own)
