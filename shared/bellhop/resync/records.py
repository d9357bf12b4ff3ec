"""Tables of the resync: one under way for each cluster, and objects that it could not find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Item, Store
from bellhop.state.resync_progress import ResyncProgress
from bellhop.state.table import Stored, Table

_SUSPICION = timedelta(days=1)
"""How long a suspect is kept if no resync goes on with it."""


class ResyncProgresses(Table[ResyncProgress, str]):
    """The resync that is under way in each cluster, and its suspects by object.

    Each cluster has a partition: a tick begins hundreds of resyncs at once, each of which writes
    its progress some fifty times, which is more than one partition of DynamoDB takes.
    """

    kind = ResyncProgress
    partition, sort = "walk/{cluster}", "walk"

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def suspect(self, cluster: str, keys: Iterable[ObjectKey]) -> None:
        """Record objects that are stored and were not found."""
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
        self.delete(cluster)
        for item in self._store.query(f"suspect/{cluster}"):
            self._store.delete(item.partition, item.sort)


class DeletionConfirmations:
    """Consecutive resyncs that found suspiciously many objects of a kind deleted, by cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, cluster: str, gvk: GVK) -> Stored[int]:
        """Read how many; none where there is no record."""
        item = self._store.get(f"strikes/{cluster}", str(gvk))
        return Stored(int(item.value["count"]), item.token) if item else Stored(0, ABSENT)

    def add(self, cluster: str, gvk: GVK, walk: str) -> int:
        """Count a resync, once however often it says so, and return how many agree by now.

        Raises:
            StaleError: another worker was quicker.
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
        """Begin to count at zero."""
        if self._store.get(f"strikes/{cluster}", str(gvk)):
            self._store.delete(f"strikes/{cluster}", str(gvk))

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"strikes/{cluster}"):
            self._store.delete(item.partition, item.sort)
