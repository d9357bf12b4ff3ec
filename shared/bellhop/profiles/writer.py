"""Profiles on their way into the records: written, withdrawn, and told to whom they concern.

Whoever loses a write has made nothing of it known, and begins anew from what is there then.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from bellhop.api.kinds import ConfigMap, EventTrigger, Secret
from bellhop.catalog.cache import Catalogs
from bellhop.clusters.management_cluster import housed
from bellhop.core.digest import digest
from bellhop.core.generated_names import GENERATED_NAMESPACE
from bellhop.declarations.diff import readers, rereaders
from bellhop.declarations.records.held_removals import Rule
from bellhop.declarations.rerender import applied_again
from bellhop.errors import ConflictError, MissingError, PermanentError, StaleError
from bellhop.extras.roles.manifests import account_of
from bellhop.ports.store import ABSENT
from bellhop.profiles.names import NameReservations
from bellhop.profiles.records.profiles import place
from bellhop.profiles.revisions import LOST, Revisions
from bellhop.rendering import event_contents as engine
from bellhop.rendering.leave_policy import departing, is_declared_for
from bellhop.settings import Settings
from bellhop.state.event_recorder import Note, Origin
from bellhop.state.messages import Apply, Instantiate, Publisher, Resolve
from bellhop.state.record import NO_OBJECT, Content, Profile, Reading, empty
from bellhop.state.records import Records
from bellhop.state.revision import Rendering
from bellhop.state.table import Stored

Found = Stored[Profile] | None


class Writer:
    """Writes profiles and asks their clusters to follow."""

    def __init__(
        self, records: Records, catalogs: Catalogs, publisher: Publisher, settings: Settings
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._revisions = Revisions(records, settings.revisions)
        self._titles = NameReservations(records, publisher)

    def holder(self, ref: engine.Ref) -> ConfigMap | Secret | None:
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
        """Write a profile and ask its clusters to follow; False if another writer was quicker.

        Inputs that fail change nothing that is applied: the last good contents stay. So does what a
        profile was rolled back to.
        """
        new = _merge(found.value if found else None, draft)
        try:
            return self.follow(found, new, message, note)
        except ConflictError as error:
            return self.write(found, failed(draft, error), message, note)

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
        new = replace(new, grants=account_of(new.contents))
        new = _leaving(old, housed(self._records, old, new))
        try:
            if old and _same(old, new):
                if old.told and old.made_of == new.made_of:
                    return True
                new = replace(old, made_of=new.made_of)
                if old.told:
                    return self._note(new, token)
                # Who wrote it may have been too late for a name.
                self._titles.keep(self._take(new))
            else:
                new = self._revisions.follow(old, new)
                new = replace(new, revision=_drawn(), told=False)
                token = self._put_titled(old, new, token)
        except StaleError:
            return False
        if old is None or (old.digest, old.error) != (new.digest, new.error):
            note.context = {**note.context, "digest": "" if new.error else new.digest}
            if new.error and not note.what:
                note.fail("render", new.error)
            note.what = note.what or "rendered"
            note.detail = note.detail or new.error or _count(new.contents)
        self._publisher.publish(_applications(new, message))
        if old is None or not old.told or old.generated != new.generated:
            self._tell_readers(new, new.titles)
        return self._note(new, token)

    def _holding(self, old: Profile | None, new: Profile) -> Profile:
        """Return a profile that stays in the clusters from which its removal is held.

        Raises:
            StaleError: it was made of declarations that are no longer the current ones.
        """
        lost = set(old.matched).difference(new.destinations) if old else set()
        if old is None or not lost:
            return new
        catalog = self._catalogs.current()
        kept = lost.intersection(departing(catalog, old))
        if kept and self._records.removals.get(_rule(old)):
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
        self._give_up(old, set(old.titles).difference(new.titles) if old else ())
        token = self._put(old, new, token)
        self._titles.keep(taken)
        return token

    def _take(self, profile: Profile) -> dict[tuple[str, str], str]:
        """Have the names of what a profile generates; what it generated last, it has already.

        Raises:
            ConflictError: another profile has one.
        """
        return self._titles.take(profile, () if profile.error else profile.titles)

    def _give_up(self, old: Profile | None, names: Iterable[tuple[str, str]]) -> None:
        """Have names no longer, and tell those who want them, and who reads what they named."""
        if old and names:
            names = sorted(names)
            self._titles.give_up(old, names)
            self._tell_readers(old, names)

    def _tell_readers(self, profile: Profile, names: Iterable[tuple[str, str]]) -> None:
        """Ask again for what refers to what a profile generates, or did.

        Its own trigger's profiles read what each of them generates itself.
        """
        keys = [(kind, GENERATED_NAMESPACE, name) for kind, name in names]
        if not keys:
            return
        catalog = self._catalogs.current()
        triggers, profiles = readers(catalog, keys)
        self._publisher.publish(applied_again(self._records, *rereaders(catalog, keys)))
        self._publisher.publish(Resolve(name) for name in sorted(profiles))
        self._publisher.publish(
            Instantiate(name, cluster)
            for name in sorted(triggers - {profile.trigger})
            for cluster in sorted(catalog.clusters)
            if catalog.source_of(catalog.triggers[name], cluster)
        )

    def _note(self, profile: Profile, token: str) -> bool:
        """Note that the clusters of a profile know of it, and what it was made of."""
        with suppress(StaleError):
            # Whoever wrote it since has told the clusters of that, or will.
            self._records.profiles.put_head(replace(profile, told=True), expect=token)
        return True

    def withdraw(
        self,
        found: Found,
        message: Origin,
        note: Note,
        declared: EventTrigger | None,
        *,
        undeclared: bool = False,
    ) -> bool:
        """Have a profile leave all clusters; False if another writer was quicker.

        What a trigger that is tried dry makes no more stays where it is until that trigger is
        not. What is no longer `declared` while it is tried dry leaves all as it is, and owns it no
        more. What is not declared, or in `undeclared` clusters by now, stays while its removal is
        held. How it leaves is what the trigger says now, and last said if it was deleted.
        """
        if found is None:
            return True
        old, token = found.value, found.token
        if declared is None or undeclared:
            made = self._undeclared(old)
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
            sync=declared.sync if declared else "Continuous",
            leaves_policies=declared.leaves_policies if declared else old.leaves_policies,
            pinned=False,
            made_at=None,
            recipe={},
            leaves_unchanged=unchanged,
        )
        if unchanged:
            # Nothing is removed, so nothing is to be checked before or after that.
            new = replace(new, checked=(), checks=())
        try:
            self._give_up(old, old.titles)
            if old.latest > 1:
                self._records.renderings.forget(place(old))
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
        return self._note(new, token)

    def _undeclared(self, old: Profile) -> bool | None:
        """Return True where the removal of a profile is held, False where it is declared again."""
        catalog = self._catalogs.current()
        if departing(catalog, old) and self._records.removals.get(_rule(old)):
            return True
        return False if any(is_declared_for(catalog, old, each) for each in old.matched) else None

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


def failed(draft: Profile, error: PermanentError) -> Profile:
    """Return a draft that holds nothing but why; what was last good stays in its place."""
    bare = replace(draft, contents=(), digest="", generated=(), reads=(), title="")
    return replace(bare, error=str(error), error_code=error.code)


def _rule(profile: Profile) -> Rule:
    return profile.trigger, "" if profile.trigger else profile.name


def _same(old: Profile, new: Profile) -> bool:
    """Say whether two are alike in all that counts: what is made again the same is no turn."""
    kept = {name: getattr(old, name) for name in _BESIDE}
    return replace(new, **kept) == old


_BESIDE = (
    *("revision", "told", "made_of", "turns", "turning", "turned_by"),
    *("number", "latest", "made_at", "recipe", "failed_at"),
)


def _drawn() -> str:
    return uuid.uuid4().hex[:16]


def _merge(old: Profile | None, draft: Profile) -> Profile:
    if old is None:
        return draft
    stays = bool(draft.error) or old.pinned
    if stays and old.digest == LOST:
        # Without the last good contents nobody can tell what is to stay.
        raise MissingError(f"cannot keep what '{old.name}' holds: its contents are lost")
    if not stays:
        return draft
    title = old.title if draft.error else draft.title
    return replace(draft, pinned=old.pinned, title=title, **contents_of(old))


def _leaving(old: Profile | None, new: Profile) -> Profile:
    """Return a profile that names the clusters that it is to leave."""
    if old is None:
        return new
    leaving = {*old.destinations, *old.leaving} - {*new.destinations}
    return replace(new, leaves=bool(leaving), leaving=tuple(sorted(leaving)))


def contents_of(held: Profile | Rendering) -> dict[str, Any]:
    """Return what a profile holds, or held, for one that is to hold the same."""
    return {name: getattr(held, name) for name in _HELD}


_HELD = ("contents", "digest", "generated", "reads", "number", "made_at", "recipe")


_OF_FILES = frozenset({"field", "address", "plain"})


def sealed(draft: Profile, contents: tuple[Content, ...]) -> Profile:
    """Return a draft with its contents, and the digest of all that it brings."""
    described = [
        [
            content.ref,
            content.entry,
            list(content.manifests),
            content.template,
            content.dialect,
            content.namespace,
            content.missing,
            to_builtins(content.how),
            list(content.clusters),
            *(to_builtins(each) for each in _special(content) if each),
        ]
        for content in contents
    ]
    beside = [list(map(dict, draft.generated)), list(map(_described, draft.reads))]
    told = [described, *beside]
    return replace(draft, contents=contents, digest=digest(told))


def _described(reading: Reading) -> dict[str, Any]:
    """Describe a reading for the digest: one without files has the fields that it always had."""
    fields: dict[str, Any] = to_builtins(reading)
    return {name: each for name, each in fields.items() if each or name not in _OF_FILES}


def _special(content: Content) -> tuple[Any, ...]:
    return content.chart, content.kustomization, content.files


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
