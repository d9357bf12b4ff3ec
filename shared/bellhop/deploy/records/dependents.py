"""Profiles that come after others in a cluster, found by the one that comes first.

There are two sorts of record: who waits to be told, until it is; and who may be there that is not
to be there without the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from bellhop.errors import StaleError
from bellhop.ports.store import Store
from bellhop.state.rollout import Dependent
from bellhop.state.table import Stored, Table

Sort = Literal["waiting", "needing"]


class Dependents:
    """Followers by cluster and the profile that they come after."""

    def __init__(self, store: Store, sort: Sort) -> None:
        self._store = store
        self._sort = sort
        self._table = Table(store, Dependent)

    def of(self, cluster: str, first: str) -> Iterator[Stored[Dependent]]:
        """Yield who comes after a profile in a cluster."""
        for item in self._table.items(self._partition(cluster), f"{first}:"):
            yield Stored(self._table.read(item.value), item.token)

    def get(self, cluster: str, first: str, profile: str) -> Stored[Dependent] | None:
        """Read whether a profile comes after another one in a cluster."""
        return self._table.get(self._partition(cluster), f"{first}:{profile}")

    def put(self, cluster: str, first: str, follower: Dependent) -> None:
        """Note who comes after a profile; who is noted already is noted anew."""
        self._table.put(self._partition(cluster), f"{first}:{follower.profile}", follower)

    def delete(self, cluster: str, first: str, kept: Stored[Dependent]) -> None:
        """Strike one out, unless it was noted anew since it was read."""
        sort = f"{first}:{kept.value.profile}"
        with suppress(StaleError):
            self._store.delete(self._partition(cluster), sort, expect=kept.token)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(self._partition(cluster)):
            self._store.delete(item.partition, item.sort)

    def _partition(self, cluster: str) -> str:
        return f"{self._sort}/{cluster}"
