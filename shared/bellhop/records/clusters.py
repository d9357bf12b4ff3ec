"""Clusters, how they are, and who may send for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bellhop.errors import InvalidError, StaleError
from bellhop.model.record import Cluster, Gate, Health
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.records.table import RETRIES, Kept, Table


class Clusters:
    """The registered clusters, by namespace/name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        was = {"token_digest": "token", "registered_at": "at"}
        self._table = Table(store, Cluster, was=was)

    def get(self, key: str) -> Kept[Cluster] | None:
        """Read a cluster."""
        return self._table.get("cluster", key)

    def all(self) -> Iterator[Cluster]:
        """Yield all clusters, by name."""
        return (self._table.read(item.value) for item in self._table.items("cluster"))

    def since(self, known: Mapping[str, Kept[Cluster]]) -> dict[str, Kept[Cluster]]:
        """Read all clusters by key; what is known, and was not written since, is not decoded."""
        found = {}
        for item in self._table.items("cluster"):
            old = known.get(item.sort)
            if old is None or old.token != item.token:
                old = Kept(self._table.read(item.value), item.token)
            found[item.sort] = old
        return found

    def put(self, cluster: Cluster, *, expect: str | None = ANY) -> str:
        """Write a cluster and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put("cluster", cluster.key, cluster, expect=expect)

    def delete(self, key: str, *, expect: str | None = ANY) -> bool:
        """Delete a cluster; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete("cluster", key, expect=expect)


class Healths:
    """How each cluster was when last met; one that was never met has a Health too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Health)

    def get(self, cluster: str) -> Kept[Health]:
        """Read how a cluster was when last met."""
        return self._table.get("health", cluster) or Kept(Health(), ABSENT)

    def put(self, cluster: str, health: Health, *, expect: str | None = ANY) -> str:
        """Write how a cluster is, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put("health", cluster, health, expect=expect)

    def delete(self, cluster: str) -> bool:
        """Forget how a cluster was; say whether it was known."""
        return self._store.delete("health", cluster)


class Gates:
    """All that ingest must know of each cluster, in one read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Gate)

    def get(self, cluster: str) -> Kept[Gate] | None:
        """Read a cluster's gate."""
        item = self._store.get("gate", cluster)
        return self._read(item) if item else None

    def put(self, cluster: str, gate: Gate) -> None:
        """Write a gate unless one of a later catalog is there, or the cluster is forgotten."""
        for _ in range(RETRIES):
            item = self._store.get("gate", cluster)
            old = self._read(item) if item else None
            if old and old.value.revision > gate.revision:
                return
            try:
                self._table.put("gate", cluster, gate, expect=item.token if item else ABSENT)
            except StaleError:
                continue
            if self._store.get("cluster", cluster) is None:
                # Whoever forgets a cluster deletes its name first: one of us sees the other.
                self.delete(cluster)
            return

    def delete(self, cluster: str) -> bool:
        """Close a gate; say whether there was one."""
        return self._store.delete("gate", cluster)

    def _read(self, item: Item) -> Kept[Gate] | None:
        try:
            return Kept(self._table.read(item.value), item.token)
        except InvalidError:
            # Of an earlier version: it says nothing, and the next sweep writes it anew.
            return None
