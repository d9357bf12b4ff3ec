"""Drift of one object: what somebody wrote to is looked at, and applied anew where it is not ours.

Only what its cluster says now counts: who tells that an object was touched may be late, be
mistaken, or tell it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.core.identity import version_of
from bellhop.deploy import contention
from bellhop.deploy.context import Contest, ReconcileContext
from bellhop.deploy.release_records import is_superseded
from bellhop.errors import MissingError
from bellhop.ports.access import Access
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube, Manifest
from bellhop.rendering.drift import is_ignored, manager_of, own_fields
from bellhop.rendering.drift_exclusions import own_fields_but, paths
from bellhop.state.record import Exclusion, Held


class _Wanted(Protocol):
    """An object as a profile wants it."""

    @property
    def key(self) -> ObjectKey:
        """Name it."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return what it is to be."""


class Drift:
    """Finds what is held and is not as it was applied."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock

    def look(self, work: ReconcileContext, wanted: Iterable[_Wanted]) -> None:
        """Take for unsure what has drifted, and what was applied before drift was watched.

        Of the latter nobody noted which fields are ours: it is applied once more. What is wanted
        with the mark that has its drift ignored is passed over.
        """
        kept = {each.key.identity for each in wanted if not is_ignored(each.manifest)}
        for key, held in list(work.held.items()):
            if key in kept and held.digest and not held.fields:
                work.held[key] = replace(held, digest="")
        touched = Identity.parse(work.message.touched) if work.message.touched else None
        if touched in kept:
            self._look_at(work, touched)

    def look_inside(self, work: ReconcileContext, excluded: Iterable[Exclusion] = ()) -> None:
        """Do the same for what releases consist of; an object says itself to be passed over.

        What is `excluded` of it is others' to decide.
        """
        for key, held in list(work.held.items()):
            if held.part_of and held.digest and not held.fields:
                work.held[key] = replace(held, digest="")
        touched = Identity.parse(work.message.touched) if work.message.touched else None
        if touched in work.held and work.held[touched].part_of:
            self._look_at(work, touched, excluded)

    def _look_at(
        self, work: ReconcileContext, key: Identity, excluded: Iterable[Exclusion] = ()
    ) -> None:
        held = work.held.get(key)
        if held is None or not held.digest:
            return
        there = self._read(work, key, held)
        if there is not None and held.part_of and is_ignored(there):
            return
        if (
            there is not None
            and own_fields_but(there, manager_of(held), paths(excluded, there)) == held.fields
            and not (held.part_of and is_superseded(self._open(work), work.held, held.part_of))
        ):
            return
        now = self._clock.now()
        often, left = contention.times(held, now), contention.wait(held, now)
        if left:
            by, pause = contention.writer(there), contention.pause(often)
            work.contests.append(Contest(key, by, often, pause, now + left))
            return
        work.mending[key] = often + 1, version_of((there or {}).get("metadata") or {})
        # What is known to be gone is made only where nobody else makes it meanwhile.
        work.held[key] = replace(held, digest="", uid=held.uid if there else "")

    def _open(self, work: ReconcileContext) -> Kube:
        cluster = work.cluster
        return self._access.open(
            cluster.key, version=cluster.credentials, account=work.profile.account
        )

    def _read(self, work: ReconcileContext, key: Identity, held: Held) -> Manifest | None:
        try:
            return self._open(work).get(*key.at(held.version))
        except MissingError:
            return None  # With its kind went the object.


def counted(
    work: ReconcileContext, key: Identity, before: Held | None, held: Held, stored: Manifest
) -> Held:
    """Count that an object was put back, which is held so from now on.

    What is applied for another reason counts nothing, nor what was as it is to be after all.
    """
    often, version = work.mending.get(key, (0, 0))
    if often and version != version_of(stored.get("metadata") or {}):
        return replace(held, mended=often, mended_at=held.applied_at)
    if before is None or before.mended_at is None:
        return held
    return replace(held, mended=before.mended, mended_at=before.mended_at)


def has_drifted(there: Manifest, held: Held | None) -> bool:
    """Say whether fields of an object are ours no more.

    Not if it is {}, nor while nobody knows how it was applied.
    """
    if not there or held is None:
        return False
    return held.fields not in ("", own_fields(there, manager_of(held)))
