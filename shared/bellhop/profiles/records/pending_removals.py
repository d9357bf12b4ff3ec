"""The clusters that a profile is still to leave, a record each.

    departure of each cluster ─► head "leaves" ─► … ─► a cluster is left: its departure is deleted
                                                   └─► the last one's: head closed, or "leaves" not

They are there before the head says so: who finds none knows that all clusters are left. One that a
worker wrote whose head lost, or who died, names a cluster that is a destination still, or is told
with the others when the profile is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT, Item, Store


class Place(NamedTuple):
    """Which profile."""

    trigger: str
    cluster: str
    name: str


class PendingRemovals:
    """Clusters by the profile that is to leave them; each profile has a partition."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, place: Place) -> Iterator[str]:
        """Yield the clusters that a profile is still to leave."""
        return (item.sort for item in self._store.query(_partition(place)))

    def token(self, place: Place, cluster: str) -> str:
        """Return the token of a departure, ABSENT where there is none."""
        item = self._store.get(_partition(place), cluster)
        return item.token if item else ABSENT

    def begin(self, place: Place, clusters: Iterable[str]) -> Mapping[str, str]:
        """Note that clusters are to be left from now on; return the token of each."""
        partition = _partition(place)
        return {each: self._store.put(Item(partition, each, {})).token for each in clusters}

    def take_back(self, place: Place, begun: Mapping[str, str]) -> None:
        """Undo what `begin` did, where nobody has begun anew since."""
        for cluster, token in begun.items():
            with suppress(StaleError):
                self.end(place, cluster, expect=token)

    def end(self, place: Place, cluster: str, *, expect: str) -> None:
        """Note that a cluster is left.

        Raises:
            StaleError: it was wanted again, and is to be left again, since it was looked at.
        """
        self._store.delete(_partition(place), cluster, expect=expect)


def _partition(place: Place) -> str:
    return f"leaving/{'/'.join(place)}"
