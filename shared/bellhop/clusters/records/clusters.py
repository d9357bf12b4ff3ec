"""Clusters, how they are, and who may send for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.concurrency import until_written
from bellhop.state.payloads import Payloads
from bellhop.state.record import Cluster, Health, IngestPolicy
from bellhop.state.table import Stored, Table, decode, encode

_MANY = 32
"""More clusters than these are read in one query."""


class Clusters:
    """The registered clusters, by namespace/name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Cluster)

    def get(self, key: str) -> Stored[Cluster] | None:
        """Read a cluster."""
        return self._table.get("cluster", key)

    def token(self, key: str) -> str:
        """Read the token of a cluster; ABSENT if it is not there."""
        item = self._store.get("cluster", key)
        return item.token if item else ABSENT

    def several(self, keys: Collection[str]) -> list[Stored[Cluster]]:
        """Read those of some clusters that are there, by name; very many in one query."""
        if len(keys) > _MANY:
            found = self.since({})
            return [found[key] for key in sorted(found.keys() & set(keys))]
        kept = (self.get(key) for key in sorted(keys))
        return [each for each in kept if each]

    def all(self) -> Iterator[Cluster]:
        """Yield all clusters, by name."""
        return (self._table.read(item.value) for item in self._table.items("cluster"))

    def any(self) -> bool:
        """Say whether there is a cluster at all; one is read at most."""
        return any(True for _ in self._table.items("cluster", limit=1))

    def since(self, known: Mapping[str, Stored[Cluster]]) -> dict[str, Stored[Cluster]]:
        """Read all clusters by key; what is known, and was not written since, is not decoded."""
        found = {}
        for item in self._table.items("cluster"):
            old = known.get(item.sort)
            if old is None or old.token != item.token:
                old = Stored(self._table.read(item.value), item.token)
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


_NEVER_MET = Stored(Health(), ABSENT)


class Healths:
    """How each cluster was when last met; one that was never met has a Health too.

    By which sources it was judged is part of it, and lies apart where there are thousands.
    """

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str) -> Stored[Health]:
        """Read how a cluster was when last met.

        Of one for which it is lost by what it was judged nothing is judged: it is swept as one
        that never was.
        """
        item = self._payloads.store.get("health", cluster)
        try:
            found = self._payloads.open(item) if item else None
        except MissingError:
            assert item
            health = decode(Health, self._payloads.head(item))
            return Stored(replace(health, swept_at=None), item.token)
        return Stored(decode(Health, found.head), found.item.token) if found else _NEVER_MET

    def head(self, cluster: str) -> Health:
        """Read how a cluster was, but for by what it was judged where that is very much."""
        item = self._payloads.store.get("health", cluster)
        return decode(Health, self._payloads.head(item)) if item else Health()

    def token(self, cluster: str) -> str:
        """Read the token for who writes how a cluster is; ABSENT if nothing is there."""
        item = self._payloads.store.get("health", cluster)
        return item.token if item else ABSENT

    def put(self, cluster: str, health: Health, *, expect: str | None = ANY) -> str:
        """Write how a cluster is, and return the token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._payloads.put("health", cluster, encode(health), None, expect=expect)

    def doubt(self, cluster: str, sources: Collection[str] | None) -> None:
        """Note that the next resync evaluates sources again, or all of them for None.

        Matches of theirs are about to end. A source that leaves and comes back as it was would be
        taken for evaluated otherwise, and its objects would stay without their matches.

        Raises:
            StaleError: another writer was quicker.
        """
        kept = self.get(cluster)
        old = kept.value.judgement
        names = {each for each in old if sources is None or each.partition(" ")[0] in sources}
        judgement = {**old, **dict.fromkeys(names, "")}
        if judgement != old:
            self.put(cluster, replace(kept.value, judgement=judgement), expect=kept.token)

    def delete(self, cluster: str) -> bool:
        """Forget how a cluster was; say whether it was known."""
        return self._payloads.delete("health", cluster)


class Gates:
    """All that ingest must know of a cluster, in one read unless there are thousands of kinds."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str) -> Stored[IngestPolicy] | None:
        """Read a cluster's gate.

        Raises:
            StaleError: which kinds count there is lost: the next sweep writes it anew.
        """
        try:
            return self._read(self._payloads.store.get("gate", cluster))
        except MissingError as error:
            raise StaleError(
                f"cannot read which kinds count in cluster '{cluster}': it is lost; the next"
                " resync of the cluster writes it again"
            ) from error

    def known(self, cluster: str) -> Stored[IngestPolicy] | None:
        """Read a gate for who is about to write it; None for one that is lost."""
        try:
            return self.get(cluster)
        except StaleError:
            return None

    @until_written("write which kinds count in '{cluster}'")
    def put(self, cluster: str, gate: IngestPolicy) -> None:
        """Write a gate unless one of a later catalog is there, or the cluster is forgotten.

        Raises:
            StaleError: other writers keep winning.
        """
        item = self._payloads.store.get("gate", cluster)
        with suppress(MissingError):
            old = self._read(item)
            if old and (old.value.revision > gate.revision or old.value == gate):
                return
        self._payloads.follow(item, Item("gate", cluster, encode(gate)), None)
        if self._payloads.store.get("cluster", cluster) is None:
            # A worker that forgets a cluster deletes its name first: one of us sees the other.
            self.delete(cluster)

    def delete(self, cluster: str) -> bool:
        """Close a gate; say whether there was one."""
        return self._payloads.delete("gate", cluster)

    def _read(self, item: Item | None) -> Stored[IngestPolicy] | None:
        found = self._payloads.open(item) if item else None
        return Stored(decode(IngestPolicy, found.head), found.item.token) if found else None
