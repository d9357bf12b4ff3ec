"""Drift of one object: after an event it is read, and applied again if others changed its fields.

Only its current state counts: an event may be late, wrong, or come twice.
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
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.rendering.drift import is_ignored, manager_of, own_fields
from bellhop.rendering.drift_exclusions import own_fields_but, paths
from bellhop.state.content import Exclusion
from bellhop.state.deployment import Held


class _Desired(Protocol):
    """A desired object of a profile."""

    @property
    def key(self) -> ObjectKey:
        """Name it."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return what it is to be."""


class Drift:
    """Finds objects that are no longer as they were applied."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock

    def mark_drifted(self, context: ReconcileContext, desired: Iterable[_Desired]) -> None:
        """Mark as uncertain what has drifted, and what was applied before drift was watched.

        The latter has no stored fields: it is applied once more. Objects whose annotation has
        their drift ignored are skipped.
        """
        kept = {each.key.identity for each in desired if not is_ignored(each.manifest)}
        for key, held in list(context.progress.held.items()):
            if key in kept and held.digest and not held.fields:
                context.progress.held[key] = replace(held, digest="")
        touched = Identity.parse(context.message.touched) if context.message.touched else None
        if touched in kept:
            self._compare(context, touched)

    def mark_drifted_parts(
        self, context: ReconcileContext, excluded: Iterable[Exclusion] = ()
    ) -> None:
        """Mark drifted objects of releases; their own annotation has them skipped.

        Paths that are `excluded` are others' to decide.
        """
        for key, held in list(context.progress.held.items()):
            if held.part_of and held.digest and not held.fields:
                context.progress.held[key] = replace(held, digest="")
        touched = Identity.parse(context.message.touched) if context.message.touched else None
        if touched in context.progress.held and context.progress.held[touched].part_of:
            self._compare(context, touched, excluded)

    def _compare(
        self, context: ReconcileContext, key: Identity, excluded: Iterable[Exclusion] = ()
    ) -> None:
        held = context.progress.held.get(key)
        if held is None or not held.digest:
            return
        there = self._read(context, key, held)
        if there is not None and held.part_of and is_ignored(there):
            return
        if (
            there is not None
            and own_fields_but(there, manager_of(held), paths(excluded, there)) == held.fields
            and not (
                held.part_of
                and is_superseded(self._open(context), context.progress.held, held.part_of)
            )
        ):
            return
        now = self._clock.now()
        often, left = contention.times(held, now), contention.wait(held, now)
        if left:
            by, pause = contention.writer(there), contention.pause(often)
            context.verdict.contests.append(Contest(key, by, often, pause, now + left))
            return
        context.progress.corrections[key] = (
            often + 1,
            version_of((there or {}).get("metadata") or {}),
        )
        # A deleted object is created only if no other client creates it meanwhile.
        context.progress.held[key] = replace(held, digest="", uid=held.uid if there else "")

    def _open(self, context: ReconcileContext) -> Kube:
        cluster = context.cluster
        return self._access.open(
            cluster.key, version=cluster.credentials, account=context.profile.account
        )

    def _read(self, context: ReconcileContext, key: Identity, held: Held) -> Manifest | None:
        try:
            return self._open(context).get(*key.at(held.version))
        except MissingError:
            return None  # With its kind went the object.


def count_correction(
    context: ReconcileContext, key: Identity, before: Held | None, held: Held, stored: Manifest
) -> Held:
    """Count a correction of drift, in the object's new entry of the inventory.

    An object that is applied for another reason does not count, nor one that had not drifted.
    """
    often, version = context.progress.corrections.get(key, (0, 0))
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
