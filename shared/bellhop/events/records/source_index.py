"""Which sources an object has matched, so that nobody has to ask for the match of each source.

  the trail names the source ─► its match is written
  the object is gone ─► its matches are deleted ─► the trail ends, and is deleted a week later

A trail only grows while its object is there. One that is ended although the object is there, by
somebody who was slow, is found within the week: whoever ends a trail looks at the object again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.errors import StaleError
from bellhop.ingest.records.observations import TOMBSTONE
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, Store
from bellhop.state.concurrency import until_written
from bellhop.state.record import SourceIndex
from bellhop.state.table import Stored, Table

MOST_NAMED = 1000
"""Sources that one trail names: with the longest names they fit into an item."""


class SourceIndexes:
    """Trails by cluster and object."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._table = Table(store, SourceIndex, in_key=("cluster", "key"))

    def get(self, cluster: str, key: ObjectKey) -> Stored[SourceIndex]:
        """Read the trail of an object; an empty one where it has matched nothing."""
        found = self._table.get(f"trail/{cluster}", str(key), cluster=cluster, key=key)
        return found or Stored(SourceIndex(cluster, key), ABSENT)

    def name(self, kept: Stored[SourceIndex], sources: Iterable[str]) -> SourceIndex:
        """Have a trail that was read name sources before their matches are written; return it.

        Raises:
            StaleError: other writers keep winning.
        """
        names = {*sources}
        with suppress(StaleError):
            return self._extend(kept, names)
        return self._extend_stored(kept.value.cluster, kept.value.key, names)

    def end(self, cluster: str, key: ObjectKey) -> bool:
        """End the trail of an object that is gone; say whether there was one that had not."""
        kept = self.get(cluster, key)
        if not kept.token or kept.value.ended:
            return False
        # Where it was written meanwhile, another worker evaluates the object.
        with suppress(StaleError):
            self._put(replace(kept.value, ended=True), kept.token)
        return True

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._table.items(f"trail/{cluster}"):
            self._table.store.delete(item.partition, item.sort)

    @until_written("write the trail of '{key}'")
    def _extend_stored(self, cluster: str, key: ObjectKey, names: Collection[str]) -> SourceIndex:
        return self._extend(self.get(cluster, key), names)

    def _extend(self, kept: Stored[SourceIndex], names: Collection[str]) -> SourceIndex:
        old = kept.value
        named = (*old.sources, *sorted({*names} - {*old.sources}))
        if len(named) > MOST_NAMED:
            new = replace(old, endless=True, ended=False)
        else:
            new = replace(old, sources=named, ended=False)
        if new != old:
            self._put(new, kept.token)
        return new

    def _put(self, trail: SourceIndex, expect: str) -> None:
        expires = self._clock.now() + TOMBSTONE if trail.ended else None
        place = f"trail/{trail.cluster}", str(trail.key)
        self._table.put(*place, trail, expect=expect, expires_at=expires)
