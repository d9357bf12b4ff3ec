"""Cluster selection of sets with maxReplicas, repeated if a selected cluster is down or leaves.

    applied, labelled, came, left ─► settle ──┬─► a selection is written, on condition ─► revision
    a resync or a probe ended ──► heed ─► settle └► nothing to write: settled     └► settle again

After a write the selection is computed again with a catalog of at least that revision, so the later
of two concurrent writers sees both changes. A worker that dies after its write has noted the set,
and `ChangeWriter.resume` publishes all effects.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from bellhop.api.kinds import DeclarationKey
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.identity import set_kind
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.declarations.diff import Key
from bellhop.declarations.fan_out import ChangeFanOut
from bellhop.declarations.records import HeldRemoval
from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import SetSelection
from bellhop.state.concurrency import until_settled
from bellhop.state.records import Records
from bellhop.state.table import Stored

_ROUNDS = 16

_AWAY = 3
"""Failures in a row after which a cluster counts as down: a short outage moves nothing."""

_NONE = Stored(SetSelection(), ABSENT)


class SetSelector:
    """Has each set with maxReplicas choose among the clusters that are there."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        fan_out: ChangeFanOut,
        removals: RemovalGuard,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._fan_out = fan_out
        self._removals = removals

    def reselect(self, cluster: str) -> None:
        """Have sets choose again to which a cluster's state makes a difference by now."""
        catalog = self._catalogs.current()
        for place in catalog.limited_sets_of(cluster):
            choice = catalog.choices.get(place, SetSelection())
            down = self._is_down(cluster)
            if cluster in choice.clusters:
                differs = down != (cluster in choice.failing)
            else:
                vacant = len(choice.clusters) < (catalog.sets[place].most or 0)
                differs = not down and (vacant or bool(choice.failing))
            if differs:
                self.settle()
                return

    def settle(self) -> list[HeldRemoval]:
        """Write what sets should choose, and publish what follows, until nothing is to be written.

        Return what the choices would have removed, and is held.

        Raises:
            StaleError: others change it all the time.
        """
        held: list[HeldRemoval] = []
        self._settle(held)
        return held

    @until_settled("choose the clusters of sets", _ROUNDS)
    def _settle(self, held: list[HeldRemoval]) -> bool:
        try:
            catalog = self._catalogs.current()
        except MissingError:
            # A missing catalog deletes nothing; a repair settles this, too.
            return True
        kept = self._records.choices.all()
        known = {place: each.value for place, each in kept.items() if place in catalog.choosing}
        if known != catalog.choices:
            # Another process is about to change the revision, or died before.
            self._records.catalog.change("clusters")
            return False
        changed = self._changed(catalog, kept)
        with suppress(StaleError):
            for place, choice in changed.items():
                held += self._write(catalog, place, choice, kept.get(place, _NONE).token)
        return not changed

    def _changed(
        self, catalog: Catalog, kept: Mapping[str, Stored[SetSelection]]
    ) -> dict[str, SetSelection | None]:
        """Return the choices that are not as they should be; None for one of no set any more."""
        changed: dict[str, SetSelection | None] = {}
        for place, declared in catalog.choosing.items():
            old = kept.get(place, _NONE).value
            new = choose(declared.most or 0, catalog.pool(place), old, self._is_down)
            if new != old:
                changed[place] = new
        return changed | dict.fromkeys(kept.keys() - catalog.choosing.keys())

    def _hold(self, before: Catalog, place: str, new: SetSelection | None) -> list[HeldRemoval]:
        """Hold what a selection would remove, if it is too much; deleting a set was checked before.

        A cluster that is down is replaced, which is the purpose of the set.
        """
        if new is None:
            return []
        old = before.choices.get(place, _NONE.value).clusters
        down = (each for each in old if each not in new.clusters and self._is_down(each))
        chosen = replace(new, clusters=(*new.clusters, *down))
        choices = {**before.choices, place: chosen}
        after = before.with_clusters(before.revision, before.clusters.values(), choices)
        key = _key(place)
        cause = f"{DeclarationKey(*key)} has chosen other clusters"
        return self._removals.hold(before, after, [key], cause)

    def _write(
        self, before: Catalog, place: str, choice: SetSelection | None, token: str
    ) -> list[HeldRemoval]:
        """Write one selection and publish its effects; return the removals that are held."""
        key = _key(place)
        pending = uuid.uuid4().hex
        self._records.pending.put(pending, {"keys": [list(key)]})
        held = self._hold(before, place, choice)
        try:
            if choice is None:
                self._records.choices.delete(place, expect=token)
            else:
                self._records.choices.put(place, choice, expect=token)
        except StaleError:
            self._records.pending.delete(pending)
            raise
        self._records.catalog.change("clusters")
        after = self._catalogs.known()
        self._removals.settle(before, after, [key], held)
        self._fan_out.publish_effects([key], before, after)
        self._records.pending.delete(pending)
        return held

    def _is_down(self, cluster: str) -> bool:
        """Return whether a cluster did not answer, or could not be listed, several times in a row.

        A cluster that answers and sends no events is not down: add-ons can be deployed to it.
        """
        circuit = self._records.circuits.get(cluster)
        if circuit and not circuit.value.closing:
            return circuit.value.failures >= _AWAY
        health = self._records.health.head(cluster)
        return health.away and health.failures >= _AWAY


def _key(place: str) -> Key:
    namespace, _, name = place.rpartition("/")
    return (set_kind(place), namespace, name)


def choose(
    most: int, pool: Sequence[str], old: SetSelection, is_down: Callable[[str], bool]
) -> SetSelection:
    """Select at most so many clusters of a pool; a selected cluster stays selected.

    A cluster that left the pool is replaced, and so is one that is down: by the first in the pool's
    order that is not. Without a replacement it stays, since its add-ons may still work. A cluster
    that is down is never newly selected. If there are too many, those that are down go first, then
    those selected last.
    """
    there, known = set(pool), set(old.clusters)
    stay = [each for each in old.clusters if each in there]
    down = {each for each in stay if is_down(each)}
    chosen = [each for each in stay if each not in down][:most]
    spare = (each for each in pool if each not in known and not is_down(each))
    while len(chosen) < most and (new := next(spare, None)):
        chosen.append(new)
    failing = [each for each in stay if each in down][: most - len(chosen)]
    return SetSelection((*chosen, *failing), tuple(failing))
