"""Deploy, first half: from a report and its triggers to ClusterProfiles; and the dispatch.

The second half, one profile to one cluster, is `bellhop.stages.execute`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bellhop.engine import instantiate as engine
from bellhop.engine.allowing import refuse_rendered
from bellhop.engine.catalog import Catalog
from bellhop.engine.digest import digest
from bellhop.engine.generating import draft_profile, generate
from bellhop.engine.naming import profile_name
from bellhop.errors import InvalidError, MissingError, PermanentError, StaleError
from bellhop.gotemplate import Limits
from bellhop.messages import Apply, Envelope, Instantiate, Publisher, Resolve
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import ClusterProfile, ConfigMap, EventTrigger, Secret
from bellhop.model.record import Content, Profile
from bellhop.ports.store import ABSENT
from bellhop.records import Kept, Records
from bellhop.records.catalogs import Catalogs
from bellhop.records.profiles import place
from bellhop.settings import Settings
from bellhop.stages.execute import Execute
from bellhop.stages.ledger import Note, Origin, noting

_RETRIES = 8
_LOST = "lost"
Found = Kept[Profile] | None


class Deploy:
    """Instantiates triggers, resolves users' profiles, and hands applications to Execute."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        execute: Execute,
        settings: Settings,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._execute = execute
        self._limits = Limits(seconds=settings.template_seconds, output=settings.template_output)

    def handle(self, message: Envelope) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is another stage's.
        """
        match message:
            case Instantiate():
                self._instantiate(message)
            case Resolve():
                self._resolve(message)
            case Apply():
                self._execute.handle(message)
            case _:
                raise InvalidError(f"cannot {message.do}: it is not the deploy stage's work")

    # Triggers -------------------------------------------------------------------------------

    def _instantiate(self, message: Instantiate) -> None:
        """Make one profile what its inputs say, and ask its clusters to follow.

        Inputs are read after the profile, and looked at again after it is written: another
        worker may have read newer ones meanwhile, and have found nothing to write.
        """
        for _ in range(_RETRIES):
            catalog = self._catalogs.current()
            trigger = catalog.triggers.get(message.trigger)
            problem = catalog.problems_in(message.cluster).get(message.trigger)
            if problem:
                self._refuse(message, problem)
            if not message.object:
                self._fan_out(catalog, trigger, message)
            inputs = self._inputs(catalog, trigger, message)
            if not self._make(catalog, trigger, message):
                continue
            if inputs == self._inputs(self._catalogs.current(), trigger, message):
                return
        raise StaleError(
            f"cannot instantiate '{message.trigger}' in '{message.cluster}': what it reads changes"
            " all the time"
        )

    def _inputs(
        self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate
    ) -> list[Any]:
        """Return what decides a profile: the catalog, and what matches in which state."""
        source = catalog.source_of(trigger, message.cluster) if trigger else None
        if trigger is None or source is None or trigger.one_for_event != bool(message.object):
            return [catalog.revision]
        if message.object:
            key = ObjectKey.parse(message.object)
            found = self._records.matches.get(message.cluster, source.name, key)
            return [catalog.revision, found and (found.value.matching, found.value.digest)]
        matches = self._records.matches.of(message.cluster, source.name)
        return [catalog.revision, [(each.key, each.digest) for each in matches if each.matching]]

    def _make(self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate) -> bool:
        """Write one profile and tell its clusters; False if another writer was quicker."""
        name = profile_name(message.trigger, message.cluster, message.object)
        found = self._found(message.trigger, message.cluster, name)
        with noting(self._records, message, message.cluster, message.object) as note:
            note.context = {"trigger": message.trigger, "profile": name}
            matched = self._matched(catalog, trigger, message.cluster, message.object)
            if trigger is None or not matched:
                return self._withdraw(found, message, note)
            new = draft_profile(catalog, trigger, message.cluster, message.object)
            return self._write(found, self._fill(new, catalog, trigger, matched), message, note)

    def _refuse(self, message: Instantiate, problem: PermanentError) -> None:
        """Leave all as it is where nobody can say which source a trigger means."""
        with noting(self._records, message, message.cluster, message.object) as note:
            note.what, note.detail = "failed", str(problem)
            note.context = {"trigger": message.trigger}
            raise problem

    def _fan_out(
        self, catalog: Catalog, trigger: EventTrigger | None, message: Instantiate
    ) -> None:
        """Ask for each object's profile: those that are there, and those that should be."""
        name, cluster = message.trigger, message.cluster
        keys = {profile.object for profile in self._records.profiles.heads(name, cluster)}
        if trigger and trigger.one_for_event:
            source = catalog.source_of(trigger, cluster)
            matches = self._records.matches.of(cluster, source.name) if source else ()
            keys.update(str(match.key) for match in matches if match.matching)
        keys.discard("")
        self._publisher.publish(replace(message, object=key) for key in sorted(keys))

    def _matched(
        self, catalog: Catalog, trigger: EventTrigger | None, cluster: str, key: str
    ) -> list[tuple[ObjectKey, Mapping[str, Any]]]:
        """Return the objects that match a trigger's source now: one, or all by key."""
        source = catalog.source_of(trigger, cluster) if trigger else None
        if trigger is None or source is None or trigger.one_for_event != bool(key):
            return []
        if key:
            found = self._records.matches.get(cluster, source.name, ObjectKey.parse(key))
            observation = self._records.observations.get(cluster, ObjectKey.parse(key))
            if not found or not found.value.matching:
                return []
            if not observation or observation.value.manifest is None:
                return []
            return [(observation.value.key, observation.value.manifest)]
        matching = sorted(
            match.key for match in self._records.matches.of(cluster, source.name) if match.matching
        )
        observations = (self._records.observations.get(cluster, each) for each in matching)
        return [
            (each.value.key, each.value.manifest)
            for each in observations
            if each and each.value.manifest
        ]

    def _fill(
        self,
        draft: Profile,
        catalog: Catalog,
        trigger: EventTrigger,
        matched: Sequence[tuple[ObjectKey, Mapping[str, Any]]],
    ) -> Profile:
        """Render the contents; what fails for good is kept as the profile's error."""
        source = catalog.source_of(trigger, draft.cluster)
        assert source is not None
        try:
            made = generate(
                trigger,
                catalog.clusters[draft.cluster],
                matched,
                self._holder,
                self._limits,
                collect=source.collect_resources,
            )
        except PermanentError as error:
            return replace(draft, error=str(error), error_code=error.code)
        return _sealed(draft, made.contents)

    # Users' own profiles ----------------------------------------------------------------------

    def _resolve(self, message: Resolve) -> None:
        for _ in range(_RETRIES):
            catalog = self._catalogs.current()
            declared = catalog.profiles.get(message.profile)
            found = self._found("", "", message.profile)
            with noting(self._records, message, "", "") as note:
                note.context = {"profile": message.profile}
                if declared is None:
                    made = self._withdraw(found, message, note)
                else:
                    made = self._write(found, self._declared(catalog, declared), message, note)
            if made and self._catalogs.current().revision == catalog.revision:
                return
        raise StaleError(f"cannot resolve '{message.profile}': it changes all the time")

    def _declared(self, catalog: Catalog, declared: ClusterProfile) -> Profile:
        draft = Profile(
            name=declared.name,
            trigger="",
            cluster="",
            object="",
            contents=(),
            destinations=catalog.profile_destinations(declared),
            tier=declared.tier,
            leaves_policies=declared.leaves_policies,
            continue_on_conflict=declared.continue_on_conflict,
            digest="",
            allow=declared.allow,
        )
        try:
            refs = engine.resolve(declared.policy_refs, {}, namespace="", limits=self._limits)
            held = [(ref, self._holder(ref)) for ref in refs]
            contents = engine.contents(held, None, always=False, limits=self._limits)
            refuse_rendered(declared, contents)
        except PermanentError as error:
            return replace(draft, error=str(error), error_code=error.code)
        return _sealed(draft, contents)

    # Profiles ---------------------------------------------------------------------------------

    def _holder(self, ref: engine.Ref) -> ConfigMap | Secret | None:
        return self._catalogs.holder(ref.kind, ref.namespace, ref.name)

    def _found(self, trigger: str, cluster: str, name: str) -> Found:
        """Read a profile; contents that are lost are as good as none, where there are others."""
        profiles = self._records.profiles
        try:
            found = profiles.get(trigger, cluster, name)
        except MissingError:
            head = profiles.head(trigger, cluster, name)
            found = head and Kept(replace(head.value, digest=_LOST), head.token)
        return found and Kept(profiles.with_leaving(found.value), found.token)

    def _write(self, found: Found, draft: Profile, message: Origin, note: Note) -> bool:
        """Write a profile and ask its clusters to follow; False if another writer was quicker.

        Inputs that fail change nothing that is applied: the last good contents stay.
        """
        old, token = (found.value, found.token) if found else (None, ABSENT)
        new = _merge(old, draft)
        if old and _same(old, new):
            if old.told:
                return True
            new = old
        else:
            try:
                new = replace(new, revision=_drawn(), told=False)
                token = self._put(old, new, token)
            except StaleError:
                return False
            if old is None or (old.digest, old.error) != (new.digest, new.error):
                note.what = "failed" if draft.error else "rendered"
                note.detail = draft.error or _count(draft.contents)
                note.context = {**note.context, "digest": draft.digest}
        self._publisher.publish(_applications(new, message))
        with suppress(StaleError):
            # Whoever wrote it since has told the clusters of that, or will.
            self._records.profiles.put_head(replace(new, told=True), expect=token)
        return True

    def _withdraw(self, found: Found, message: Origin, note: Note) -> bool:
        """Have a profile leave all clusters; False if another writer was quicker."""
        if found is None:
            return True
        old, token = found.value, found.token
        # What a worker noted whose head lost, or who died, is to be left with all others.
        noted = self._records.departures.of(place(old))
        leaving = tuple(sorted({*old.destinations, *noted}))
        new = replace(
            old,
            contents=(),
            destinations=(),
            leaves=bool(leaving),
            leaving=leaving,
            digest="",
            error="",
            error_code="",
        )
        try:
            if not leaving:
                self._records.profiles.delete(old.trigger, old.cluster, old.name, expect=token)
                return True
            if not _same(old, new):
                new = replace(new, revision=_drawn(), told=False)
                token = self._put(old, new, token)
                note.what = "withdrawn" if old.destinations else ""
            elif old.told:
                return True
            else:
                new = old
        except StaleError:
            return False
        self._publisher.publish(_applications(new, message))
        with suppress(StaleError):
            self._records.profiles.put_head(replace(new, told=True), expect=token)
        return True

    def _put(self, old: Profile | None, new: Profile, token: str) -> str:
        """Write a profile after noting the clusters that it leaves from now on; return its token.

        Raises:
            StaleError: another writer was quicker.
        """
        leaving = set(new.leaving).difference(old.leaving if old else ())
        begun = self._records.departures.begin(place(new), leaving)
        try:
            return self._records.profiles.put(new, expect=token)
        except StaleError:
            self._records.departures.take_back(place(new), begun)
            raise


def _same(old: Profile, new: Profile) -> bool:
    return replace(new, revision=old.revision, told=old.told) == old


def _drawn() -> str:
    return uuid.uuid4().hex[:16]


def _merge(old: Profile | None, draft: Profile) -> Profile:
    if old is None:
        return draft
    leaving = {*old.destinations, *old.leaving} - {*draft.destinations}
    draft = replace(draft, leaves=bool(leaving), leaving=tuple(sorted(leaving)))
    if draft.error and old.digest == _LOST:
        # Without the last good contents nobody can tell what is to stay.
        raise MissingError(f"cannot keep what '{old.name}' holds: its contents are lost")
    if draft.error:
        return replace(draft, contents=old.contents, digest=old.digest)
    return draft


def _sealed(draft: Profile, contents: tuple[Content, ...]) -> Profile:
    described = [
        [
            content.ref,
            content.entry,
            list(content.manifests),
            content.template,
            content.dialect,
        ]
        for content in contents
    ]
    return replace(draft, contents=contents, digest=digest(described))


def _applications(profile: Profile, message: Origin) -> Iterator[Apply]:
    return (
        Apply(
            profile.trigger,
            profile.cluster,
            profile.name,
            destination,
            trace=message.trace,
            rang=message.rang,
        )
        for destination in (*profile.destinations, *profile.leaving)
    )


def _count(contents: Sequence[Content]) -> str:
    named = [
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for content in contents
        for manifest in content.manifests
    ]
    return ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")  # noqa: PLR2004
