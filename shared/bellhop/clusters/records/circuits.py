"""Clusters that do not answer: few, and read before each work on one."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.ports.store import ANY, Store
from bellhop.state.record import Circuit
from bellhop.state.table import Stored, Table

_PARTITION = "circuit"


class Circuits:
    """Circuits by cluster; there is one as long as a cluster does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Circuit)

    def get(self, cluster: str) -> Stored[Circuit] | None:
        """Read the circuit of a cluster that does not answer."""
        return self._table.get(_PARTITION, cluster)

    def all(self) -> Iterator[tuple[str, Circuit]]:
        """Yield the clusters that do not answer, by name, each with its circuit."""
        for item in self._table.items(_PARTITION):
            yield item.sort, self._table.read(item.value)

    def put(self, cluster: str, circuit: Circuit, *, expect: str | None = ANY) -> str:
        """Write a circuit and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(_PARTITION, cluster, circuit, expect=expect)

    def delete(self, cluster: str, *, expect: str | None = ANY) -> bool:
        """Forget a circuit; say whether there was one.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(_PARTITION, cluster, expect=expect)
