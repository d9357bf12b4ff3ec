"""How clusters are by ClusterHealthChecks: one record a cluster and check."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.ports.store import ANY, Store
from bellhop.state.condition import Condition
from bellhop.state.table import Stored, Table


class Conditions:
    """Conditions by cluster and check."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Condition)

    def of(self, cluster: str) -> dict[str, Stored[Condition]]:
        """Read the conditions of a cluster, by check."""
        items = self._table.items(f"condition/{cluster}")
        return {item.sort: Stored(self._table.read(item.value), item.token) for item in items}

    def put(self, cluster: str, check: str, condition: Condition, *, expect: str) -> str:
        """Write a condition and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(f"condition/{cluster}", check, condition, expect=expect)

    def delete(self, cluster: str, check: str, *, expect: str | None = ANY) -> bool:
        """Forget a condition; say whether there was one.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(f"condition/{cluster}", check, expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"condition/{cluster}"):
            self._store.delete(item.partition, item.sort)

    def checked(self, clusters: Iterator[str]) -> Iterator[tuple[str, str, Condition]]:
        """Yield (cluster, check, condition) of clusters, in their order."""
        for cluster in clusters:
            for check, kept in self.of(cluster).items():
                yield cluster, check, kept.value
