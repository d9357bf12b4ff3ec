"""Whose turn it is, of the clusters of a profile that changes so many of them at a time.

One record for a profile names those whose turn it is, and each that waits has one of its own: a
thousand that wait write a thousand records, and only those whose turn comes or ends the one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from bellhop.errors import StaleError
from bellhop.ports.store import Item, Store
from bellhop.profiles.records.pending_removals import Place
from bellhop.state.rollout import RolloutState
from bellhop.state.table import Stored, Table


class RolloutStates:
    """Rotas by profile, and the clusters that wait for their turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, RolloutState)

    def get(self, place: Place) -> Stored[RolloutState] | None:
        """Read whose turn it is of a profile's clusters."""
        return self._table.get(*_key(place))

    def put(self, place: Place, rota: RolloutState, *, expect: str | None) -> str:
        """Write whose turn it is, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(*_key(place), rota, expect=expect)

    def delete(self, place: Place, *, expect: str | None) -> None:
        """Forget whose turn it is: nobody's.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self._store.delete(*_key(place), expect=expect)

    def waiting(self, place: Place) -> Iterator[Stored[str]]:
        """Yield the clusters that wait for their turn, by name."""
        for item in self._store.query(_waiting(place)):
            yield Stored(item.sort, item.token)

    def wait(self, place: Place, cluster: str) -> None:
        """Note that a cluster waits for its turn; one that is noted is noted anew."""
        self._store.put(Item(_waiting(place), cluster, {}))

    def end_wait(self, place: Place, kept: Stored[str]) -> None:
        """Strike a cluster out, unless it was noted anew since it was read."""
        with suppress(StaleError):
            self._store.delete(_waiting(place), kept.value, expect=kept.token)

    def forget_wait(self, place: Place, cluster: str) -> None:
        """Strike a cluster out, whenever it was noted."""
        self._store.delete(_waiting(place), cluster)


def _key(place: Place) -> tuple[str, str]:
    return f"rota/{place.trigger}/{place.cluster}", place.name


def _waiting(place: Place) -> str:
    return f"queued/{'/'.join(place)}"
