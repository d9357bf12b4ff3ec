"""Which objects match which sources: an EventReport is a view over them."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.core.gvk import ObjectKey
from bellhop.ports.store import ANY, Item, Store
from bellhop.state.record import Match
from bellhop.state.table import Stored, Table


class Matches:
    """Matches by cluster, source and object."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Match, in_key=("cluster", "source", "key"))

    def get(self, cluster: str, source: str, key: ObjectKey) -> Stored[Match] | None:
        """Read one match."""
        item = self._store.get(f"match/{cluster}", f"{source}/{key}")
        return Stored(self._read(cluster, item), item.token) if item else None

    def of(self, cluster: str, source: str = "", *, after: str = "") -> Iterator[Match]:
        """Yield the matches of a cluster, or of one source in it, by object.

        Only those `after` a SOURCE/OBJECT, where it is given.
        """
        prefix = f"{source}/" if source else ""
        items = self._table.items(f"match/{cluster}", prefix, after)
        return (self._read(cluster, item) for item in items)

    def marks(self, cluster: str, source: str) -> Iterator[tuple[str, str]]:
        """Yield the objects that match a source now, and the digest of each, by object.

        As text and little else: who renders all of them reads this each time one changes.
        """
        prefix = f"{source}/"
        for item in self._table.items(f"match/{cluster}", prefix):
            if item.value["matching"]:
                yield item.sort.removeprefix(prefix), item.value["digest"]

    def count(self, cluster: str, source: str, most: int | None = None) -> int:
        """Count the objects that match a source now; `most` says how many are looked at."""
        items = self._table.items(f"match/{cluster}", f"{source}/", limit=most)
        return sum(bool(item.value["matching"]) for item in items)

    def put(self, match: Match, *, expect: str | None = ANY) -> str:
        """Write one match and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        sort = f"{match.source}/{match.key}"
        return self._table.put(f"match/{match.cluster}", sort, match, expect=expect)

    def delete(
        self, cluster: str, source: str, key: ObjectKey, *, expect: str | None = ANY
    ) -> bool:
        """Delete one match; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._store.delete(f"match/{cluster}", f"{source}/{key}", expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"match/{cluster}"):
            self._store.delete(item.partition, item.sort)

    def _read(self, cluster: str, item: Item) -> Match:
        source, _, key = item.sort.partition("/")
        known = {"cluster": cluster, "source": source, "key": ObjectKey.parse(key)}
        return self._table.read(item.value, **known)
