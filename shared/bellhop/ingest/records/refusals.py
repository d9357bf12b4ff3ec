"""Requests that were refused in the name of each cluster or outside sender, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from bellhop.ports.store import ANY, Store
from bellhop.state.record import Refusals
from bellhop.state.table import Stored, Table

FORGOTTEN = timedelta(minutes=10)
"""How long it is told that senders were refused; one that goes on is told anew each minute."""


class RefusalCounts:
    """How many requests were refused lately, by cluster; by share of an outside sender, too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Refusals)

    def get(self, cluster: str) -> Stored[Refusals] | None:
        """Read how many requests were refused lately; None if none was."""
        return self._table.get("refusals", cluster)

    def put(self, cluster: str, refusals: Refusals, *, expect: str | None = ANY) -> str:
        """Write how many were refused, and return the token; it is forgotten once no more are.

        Raises:
            StaleError: something else than `expect` is there.
        """
        expires = refusals.at + FORGOTTEN
        return self._table.put("refusals", cluster, refusals, expect=expect, expires_at=expires)

    def delete(self, cluster: str) -> bool:
        """Forget what was refused, as who may send has changed; say whether anything was."""
        return self._store.delete("refusals", cluster)

    def all(self) -> Iterator[tuple[str, Refusals]]:
        """Yield in whose name requests were refused lately, and how many."""
        for item in self._table.items("refusals"):
            yield item.sort, self._table.read(item.value)

    def forget(self, cluster: str) -> None:
        """Forget what was refused in the name of a cluster and of its outside senders."""
        self.delete(cluster)
        for item in self._table.items("refusals", f"{cluster}/"):
            self.delete(item.sort)
