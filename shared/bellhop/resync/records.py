"""Sweeps under way: one a cluster, and the objects that it could not find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.record import ResyncProgress
from bellhop.state.table import Stored, Table

_SUSPICION = timedelta(days=1)
"""How long a suspicion is kept that nobody came back to."""

_WALK = "walk"
"""Where a cluster's walk is, in a partition of the cluster's own.

A tick begins hundreds of sweeps at once, each of which writes its walk some fifty times: more than
one partition of DynamoDB takes.
"""


class ResyncProgresses:
    """The walk of each cluster, and its suspects by object."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._table = Table(store, ResyncProgress)

    def get(self, cluster: str) -> Stored[ResyncProgress] | None:
        """Read the walk that is under way in a cluster."""
        return self._table.get(f"walk/{cluster}", _WALK)

    def put(self, cluster: str, walk: ResyncProgress, *, expect: str | None = ANY) -> str:
        """Write how far a walk has come, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(f"walk/{cluster}", _WALK, walk, expect=expect)

    def delete(self, cluster: str, *, expect: str | None = ANY) -> bool:
        """End a walk; say whether there was one.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(f"walk/{cluster}", _WALK, expect=expect)

    def suspect(self, cluster: str, keys: Iterable[ObjectKey]) -> None:
        """Note objects that are kept and were not found."""
        expires = self._clock.now() + _SUSPICION
        for key in keys:
            self._store.put(Item(f"suspect/{cluster}", str(key), {}, expires_at=expires))

    def suspects(self, cluster: str, gvk: GVK) -> Iterator[ObjectKey]:
        """Yield the objects of a kind that were not found, by key."""
        prefix = "/".join(gvk) + "/"
        for item in self._store.query(f"suspect/{cluster}", prefix=prefix):
            yield ObjectKey.parse(item.sort)

    def clear(self, cluster: str, keys: Iterable[ObjectKey]) -> None:
        """Suspect objects no longer."""
        for key in keys:
            self._store.delete(f"suspect/{cluster}", str(key))

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        self._store.delete(f"walk/{cluster}", _WALK)
        for item in self._store.query(f"suspect/{cluster}"):
            self._store.delete(item.partition, item.sort)


class DeletionConfirmations:
    """How many sweeps in a row found suspiciously much of a kind gone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, cluster: str, gvk: GVK) -> Stored[int]:
        """Read how many; none where there is no record."""
        item = self._store.get(f"strikes/{cluster}", str(gvk))
        return Stored(int(item.value["count"]), item.token) if item else Stored(0, ABSENT)

    def add(self, cluster: str, gvk: GVK, walk: str) -> int:
        """Count a sweep, once however often it says so, and return how many agree by now.

        Raises:
            StaleError: somebody else was quicker.
        """
        partition, sort = f"strikes/{cluster}", str(gvk)
        item = self._store.get(partition, sort)
        count = int(item.value["count"]) if item else 0
        if item and item.value.get("walk") == walk:
            return count
        new = Item(partition, sort, {"count": count + 1, "walk": walk})
        self._store.put(new, expect=item.token if item else ABSENT)
        return count + 1

    def clear(self, cluster: str, gvk: GVK) -> None:
        """Begin to count anew."""
        if self._store.get(f"strikes/{cluster}", str(gvk)):
            self._store.delete(f"strikes/{cluster}", str(gvk))

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"strikes/{cluster}"):
            self._store.delete(item.partition, item.sort)
