"""What profiles hold in clusters that is to stay as it is: the kinds that ring for it."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.ports.store import ANY, Store
from bellhop.state.record import Watch
from bellhop.state.table import Stored, Table


class Watches:
    """Watched kinds by cluster and profile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Watch, in_key=("cluster", "profile"))

    def get(self, cluster: str, profile: str) -> Stored[Watch] | None:
        """Read which kinds are watched in a cluster for a profile."""
        return self._table.get(f"watch/{cluster}", profile, cluster=cluster, profile=profile)

    def of(self, cluster: str) -> Iterator[Stored[Watch]]:
        """Yield what is watched in a cluster, by profile."""
        for item in self._table.items(f"watch/{cluster}"):
            read = self._table.read(item.value, cluster=cluster, profile=item.sort)
            yield Stored(read, item.token)

    def put(self, watch: Watch, *, expect: str | None = ANY) -> str:
        """Write which kinds are watched, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(f"watch/{watch.cluster}", watch.profile, watch, expect=expect)

    def delete(self, cluster: str, profile: str, *, expect: str | None = ANY) -> bool:
        """Watch nothing for a profile any more; say whether anything was.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(f"watch/{cluster}", profile, expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"watch/{cluster}"):
            self._store.delete(item.partition, item.sort)
