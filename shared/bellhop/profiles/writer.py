"""Writer of profiles: it stores and withdraws them, and publishes the change to their clusters.

A failed conditional write publishes nothing, and begins again from the stored profile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, ConfigMap, EventTrigger, Secret
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.clusters.management_cluster import add_management_cluster
from bellhop.core.identity import GENERATED_NAMESPACE
from bellhop.declarations.diff import list_readers, list_rereaders
from bellhop.declarations.fan_out import list_applications
from bellhop.declarations.records import Rule
from bellhop.errors import ConflictError, MissingError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.profiles.drafts import (
    LOST,
    Revisions,
    fail_draft,
    is_same,
    merge_draft,
    name_leaving,
)
from bellhop.profiles.names import NameReservations
from bellhop.profiles.records import place
from bellhop.rendering.inputs import Ref
from bellhop.rendering.leave_policy import is_declared_for, list_departing
from bellhop.settings import Settings
from bellhop.state.content import NO_OBJECT, Content, empty, get_granted_account
from bellhop.state.event_recorder import Note, Origin
from bellhop.state.messages import CHARTS, Apply, Instantiate, Publisher, Resolve
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored

Found = Stored[Profile] | None


class Writer:
    """Writes profiles, and requests their clusters to apply them."""

    def __init__(
        self, records: Records, catalogs: Catalogs, publisher: Publisher, settings: Settings
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._revisions = Revisions(records, settings.revisions)
        self._titles = NameReservations(records, publisher)

    def holder(self, ref: Ref) -> ConfigMap | Secret | None:
        """Look a ConfigMap or Secret up: as users applied it, or as a trigger generated it."""
        declared = self._catalogs.holder(ref.kind, ref.namespace, ref.name)
        if declared is None and ref.namespace == GENERATED_NAMESPACE:
            return self._titles.read(ref.kind, ref.name)
        return declared

    def found(self, trigger: str, cluster: str, name: str) -> Found:
        """Read a profile; contents that are lost are as good as none, where there are others."""
        profiles = self._records.profiles
        try:
            found = profiles.get(trigger, cluster, name)
        except MissingError:
            head = profiles.head(trigger, cluster, name)
            found = head and Stored(replace(head.value, digest=LOST), head.token)
        return found and Stored(profiles.with_leaving(found.value), found.token)

    def write(self, found: Found, draft: Profile, message: Origin, note: Note) -> bool:
        """Write a profile and have its clusters apply it; False if another writer was quicker.

        Inputs that fail change nothing that is applied: the last good contents stay. So does what a
        profile was rolled back to.
        """
        new = merge_draft(found.value if found else None, draft)
        try:
            return self.follow(found, new, message, note)
        except ConflictError as error:
            return self.write(found, fail_draft(draft, error), message, note)

    def follow(self, found: Found, new: Profile, message: Origin, note: Note) -> bool:
        """Write a profile after the one that was found; False if another writer was quicker.

        Raises:
            ConflictError: another profile has the name of something that it generates.
        """
        old, token = (found.value, found.token) if found else (None, ABSENT)
        failed_at = old.failed_at if old and old.error else self._records.clock.now()
        new = replace(new, failed_at=failed_at if new.error else None)
        try:
            new = self._holding(old, new)
        except StaleError:
            return False
        new = replace(new, grants=get_granted_account(new.contents))
        new = name_leaving(old, add_management_cluster(self._records, old, new))
        try:
            if old and is_same(old, new):
                if old.told and old.made_of == new.made_of:
                    return True
                new = replace(old, made_of=new.made_of)
                if old.told:
                    return self._note(new, token)
                # Its writer may have been too late for a name.
                self._titles.keep(self._take(new))
            else:
                new = self._revisions.follow(old, new)
                new = self._revise(new)
                token = self._put_titled(old, new, token)
        except StaleError:
            return False
        if old is None or (old.digest, old.error) != (new.digest, new.error):
            note.context = {**note.context, "digest": "" if new.error else new.digest}
            if new.error and not note.what:
                note.fail("render", new.error)
            note.what = note.what or "rendered"
            note.detail = note.detail or new.error or _count(new.contents)
        self._publisher.publish(_applications(old, new, message))
        if old is None or not old.told or old.generated != new.generated:
            self._notify_readers(new, new.titles)
        return self._note(new, token)

    def _holding(self, old: Profile | None, new: Profile) -> Profile:
        """Return a profile that stays in the clusters from which its removal is held.

        Raises:
            StaleError: it was made of declarations that are no longer the current ones.
        """
        lost = set(old.matched).difference(new.destinations) if old else set()
        if old is None or not lost:
            return new
        held, catalog = self._is_held(old, self._catalogs.current())
        kept = lost.intersection(list_departing(catalog, old)) if held else ()
        if kept:
            stays = tuple(sorted({*new.destinations, *kept}))
            # It is not what its inputs make: once it is released they are asked again.
            return replace(new, destinations=stays, made_of="")
        if any(is_declared_for(catalog, old, each) for each in lost):
            # Somebody has taken the change back, and nothing is held of it any more.
            raise StaleError(f"cannot write profile '{old.name}': the declarations have changed")
        return new

    def _put_titled(self, old: Profile | None, new: Profile, token: str) -> str:
        """Write a profile that has the names of what it generates; return its token.

        Raises:
            ConflictError: another profile has one of the names.
            StaleError: another writer was quicker.
        """
        taken = self._take(new)
        self._release_names(old, set(old.titles).difference(new.titles) if old else ())
        token = self._put(old, new, token)
        if taken:
            self._titles.keep(taken)
        return token

    def _take(self, profile: Profile) -> dict[tuple[str, str], str]:
        """Reserve the names of what a profile generates; it has those of its last revision already.

        Raises:
            ConflictError: another profile has one.
        """
        if profile.error or not profile.titles:
            return {}
        return self._titles.take(profile, profile.titles)

    def _release_names(self, old: Profile | None, names: Iterable[tuple[str, str]]) -> None:
        """Free names, and notify the profiles that wait for them or read what they named."""
        if old and names:
            names = sorted(names)
            self._titles.release(old, names)
            self._notify_readers(old, names)

    def _notify_readers(self, profile: Profile, names: Iterable[tuple[str, str]]) -> None:
        """Render again what refers to objects that a profile generates, or generated.

        Its own trigger's profiles read what each of them generates itself.
        """
        keys = [(kind, GENERATED_NAMESPACE, name) for kind, name in names]
        if not keys:
            return
        catalog = self._catalogs.current()
        triggers, profiles = list_readers(catalog, keys)
        self._publisher.publish(list_applications(self._records, *list_rereaders(catalog, keys)))
        self._publisher.publish(Resolve(name) for name in sorted(profiles))
        self._publisher.publish(
            Instantiate(name, cluster)
            for name in sorted(triggers - {profile.trigger})
            for cluster in sorted(catalog.clusters)
            if catalog.source_of(catalog.triggers[name], cluster)
        )

    def _revise(self, profile: Profile) -> Profile:
        now = self._records.clock.now()
        return replace(profile, revision=_drawn(), revised_at=now, told=False)

    def _note(self, profile: Profile, token: str) -> bool:
        """Mark a profile as published, with the digest of its inputs."""
        with suppress(StaleError):
            # A later writer has published its own revision, or will.
            self._records.profiles.mark_published(profile, expect=token)
        return True

    def withdraw(
        self,
        found: Found,
        message: Origin,
        note: Note,
        declared: EventTrigger | ClusterProfile | None,
        catalog: Catalog,
        *,
        undeclared: bool = False,
    ) -> bool:
        """Have a profile leave all clusters; False if another writer was quicker.

        A profile that a trigger in dry run makes no more stays until that trigger leaves dry run.
        A profile in dry run that is no longer `declared` leaves its objects as they are, and owns
        them no more. A profile that is not declared, or is in `undeclared` clusters by now, stays
        while its removal is held. The trigger decides how it leaves, as it is now, or as it was
        when it was deleted.
        """
        if found is None:
            return True
        old, token = found.value, found.token
        if declared is None or undeclared:
            made = self._undeclared(old, catalog)
            if made is not None:
                return made
        # What a worker noted whose head lost, or who died, is to be left with all others.
        noted = self._records.departures.of(place(old))
        leaving = tuple(sorted({*old.destinations, *noted}))
        unchanged = old.leaves_unchanged or (declared is None and old.sync == "DryRun")
        new = replace(
            old,
            contents=(),
            destinations=(),
            leaves=bool(leaving),
            leaving=leaving,
            digest="",
            error="",
            error_code="",
            failed_at=None,
            made_of="",
            paused=False,
            generated=(),
            reads=(),
            pinned=False,
            made_at=None,
            recipe={},
            leaves_unchanged=unchanged,
            **(declared.policy.ending if declared else {"sync": "Continuous"}),
        )
        if unchanged:
            # Nothing is removed, so nothing is to be checked before or after that.
            new = replace(new, checked=(), checks=())
        try:
            self._release_names(old, old.titles)
            if old.latest > 1:
                self._records.renderings.delete_all(place(old))
            if not leaving:
                self._records.profiles.delete(old.trigger, old.cluster, old.name, expect=token)
                return True
            if not is_same(old, new):
                new = self._revise(new)
                token = self._put(old, new, token)
                note.what = "withdrawn" if old.destinations else ""
            elif old.told:
                return True
            else:
                new = old
        except StaleError:
            return False
        self._publisher.publish(_applications(old, new, message))
        return self._note(new, token)

    def _undeclared(self, old: Profile, catalog: Catalog) -> bool | None:
        """Return True where the removal of a profile is held, False where it is declared again."""
        held, catalog = self._is_held(old, catalog)
        if held:
            return True
        return False if any(is_declared_for(catalog, old, each) for each in old.matched) else None

    def _is_held(self, old: Profile, catalog: Catalog) -> tuple[bool, Catalog]:
        """Return whether something that a profile leaves is held, and the catalog that says so.

        A hold is written before the catalog that needs it, and ends after the one that does not: if
        there is none, that means something only with the same catalog before and after.
        """
        while True:
            if list_departing(catalog, old) and self._records.removals.get(_rule(old)):
                return True, catalog
            now = self._catalogs.current()
            if now.revision == catalog.revision:
                return False, now
            catalog = now

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


def _rule(profile: Profile) -> Rule:
    return profile.trigger, "" if profile.trigger else profile.name


def _drawn() -> str:
    return uuid.uuid4().hex[:16]


def _applications(old: Profile | None, profile: Profile, message: Origin) -> Iterator[Apply]:
    """Yield the messages that deploy or withdraw a profile.

    Where a chart changes, or comes or goes with the cluster, only workers with Helm can do it.
    """
    before, charts = _charts(old), _charts(profile)
    stay = {*old.destinations} - {*profile.leaving} if old and before == charts else set()
    return (
        Apply(
            profile.trigger,
            profile.cluster,
            profile.name,
            destination,
            trace=message.trace,
            event_at=message.event_at,
            of=CHARTS if (before or charts) and destination not in stay else "",
        )
        for destination in (*profile.destinations, *profile.leaving)
    )


def _charts(profile: Profile | None) -> list[Content]:
    return [each for each in profile.contents if each.chart] if profile else []


def _count(contents: Sequence[Content]) -> str:
    if empty(contents):
        return NO_OBJECT
    named = [
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for content in contents
        for manifest in content.manifests
    ]
    named += [f"Release {content.chart.release}" for content in contents if content.chart]
    named += [f"kustomization of {content.ref}" for content in contents if content.kustomization]
    return ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")  # noqa: PLR2004
