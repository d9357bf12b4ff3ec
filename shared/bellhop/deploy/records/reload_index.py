"""Which profiles' workloads read a ConfigMap or Secret: by cluster and object, one each."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.core.gvk import Identity
from bellhop.ports.store import Store
from bellhop.state.reload_index import Mount
from bellhop.state.table import Table


class ReloadIndex:
    """Profiles by what they read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Mount)

    def of(self, cluster: str, key: Identity) -> Iterator[Mount]:
        """Yield the profiles whose workloads read an object."""
        for item in self._table.items(f"mount/{cluster}", f"{key}/"):
            yield self._table.read(item.value)

    def has_any(self, cluster: str) -> bool:
        """Say whether anything in a cluster is read by workloads that restart."""
        return any(True for _ in self._store.query(f"mount/{cluster}", limit=1))

    def put(self, cluster: str, key: Identity, mount: Mount) -> None:
        """Note that a profile's workloads read an object."""
        self._table.put(f"mount/{cluster}", f"{key}/{mount.profile}", mount)

    def delete(self, cluster: str, key: Identity, profile: str) -> None:
        """Note that they read it no more."""
        self._store.delete(f"mount/{cluster}", f"{key}/{profile}")

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"mount/{cluster}"):
            self._store.delete(item.partition, item.sort)
