"""Tables of clusters: registered clusters, health, ingest policies, circuits, heartbeats."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from bellhop.clusters.alert import Alert
from bellhop.errors import MissingError, StaleError
from bellhop.ports.store import ABSENT, Item
from bellhop.state.cluster import Circuit, Cluster, Health, Heartbeat
from bellhop.state.concurrency import until_written
from bellhop.state.ingest_policy import IngestPolicy
from bellhop.state.payloads import Payloads
from bellhop.state.table import SealedTable, Stored, Table, encode

_MANY = 32
"""More clusters than these are read in one query."""


class Clusters(Table[Cluster, str]):
    """The registered clusters, by namespace/name."""

    kind = Cluster
    partition, sort = "cluster", "{key}"

    def several(self, keys: Collection[str]) -> list[Stored[Cluster]]:
        """Read those of some clusters that are there, by name; very many in one query."""
        if len(keys) > _MANY:
            found = self.since({})
            return [found[key] for key in sorted(found.keys() & set(keys))]
        kept = (self.get(key) for key in sorted(keys))
        return [each for each in kept if each]

    def all(self) -> Iterator[Cluster]:
        """Yield all clusters, by name."""
        return (cluster.value for _, cluster in self.rows())

    def any(self) -> bool:
        """Say whether there is a cluster at all; one is read at most."""
        return any(True for _ in self.items(limit=1))

    def since(self, known: Mapping[str, Stored[Cluster]]) -> dict[str, Stored[Cluster]]:
        """Read all clusters by key; those in `known` that have not changed are not decoded."""
        found = {}
        for item in self.items():
            old = known.get(item.sort)
            same = old is not None and old.token == item.token
            found[item.sort] = old if old and same else Stored(self.read_item(item), item.token)
        return found


class Healths(SealedTable[Health, str]):
    """Health of each cluster when it was last reached; of one that never was, a Health too.

    The sources that it was evaluated by are part of it, and lie apart where there are thousands.
    Of a health whose sources are lost nothing is evaluated: the next resync evaluates all.
    """

    kind = Health
    partition, sort = "health", "{cluster}"

    def get(self, cluster: str) -> Stored[Health]:
        """Read the health of a cluster."""
        return super().get(cluster) or Stored(Health(), ABSENT)

    def head(self, cluster: str) -> Health:  # type: ignore[override]
        """Read the health of a cluster, without its sources where they are very many."""
        found = super().head(cluster)
        return found.value if found else Health()

    def restore(self, item: Item, _: MissingError) -> Health:
        """Read a health of which the sources are lost."""
        return replace(self.read_item(item), swept_at=None)

    def doubt(self, cluster: str, sources: Collection[str] | None) -> None:
        """Record that the next resync evaluates sources again, or all of them for None.

        Matches of theirs are about to end. A source that leaves and comes back as it was would be
        taken for evaluated otherwise, and its objects would stay without their matches.

        Raises:
            StaleError: another writer was quicker.
        """
        kept = self.get(cluster)
        old = kept.value.judgement
        names = {each for each in old if sources is None or each.partition(" ")[0] in sources}
        current = {**old, **dict.fromkeys(names, "")}
        if current != old:
            self.put(cluster, replace(kept.value, judgement=current), expect=kept.token)


class Gates(SealedTable[IngestPolicy, str]):
    """The ingest policy of each cluster, in one read unless it names thousands of kinds."""

    kind = IngestPolicy
    partition, sort = "gate", "{cluster}"

    def get(self, cluster: str) -> Stored[IngestPolicy] | None:
        """Read the ingest policy of a cluster.

        Raises:
            StaleError: the kinds that it names are lost: the next resync writes it again.
        """
        try:
            return super().get(cluster)
        except MissingError as error:
            raise StaleError(
                f"cannot read which kinds count in cluster '{cluster}': it is lost; the next"
                " resync of the cluster writes it again"
            ) from error

    def get_or_none(self, cluster: str) -> Stored[IngestPolicy] | None:
        """Read a policy that is about to be written; None for one that is lost."""
        with suppress(StaleError):
            return self.get(cluster)
        return None

    @until_written("write which kinds count in '{cluster}'")
    def put(self, cluster: str, gate: IngestPolicy) -> None:  # type: ignore[override]
        """Write a policy unless one of a later catalog is there, or the cluster is forgotten.

        Raises:
            StaleError: other writers keep winning.
        """
        item = self._store.get("gate", cluster)
        with suppress(MissingError):
            old = self.open(item) if item else None
            if old and (old.value.revision > gate.revision or old.value == gate):
                return
        self._payloads.follow(item, Item("gate", cluster, encode(gate)), None)
        if self._store.get("cluster", cluster) is None:
            # A worker that forgets a cluster deletes its name first: one of us sees the other.
            self.delete(cluster)


class Circuits(Table[Circuit, str]):
    """Clusters that do not answer: few, and read before each work on one."""

    kind = Circuit
    partition, sort = "circuit", "{cluster}"

    def all(self) -> Iterator[tuple[str, Circuit]]:
        """Yield the clusters that do not answer, by name, each with its circuit."""
        return ((cluster, circuit.value) for cluster, circuit in self.rows())


class Alerts(Table[Alert, str]):
    """Clusters and promotions that need attention: few, so a tick counts them without reading all.

    One that needs no attention has no record. The name of a promotion has no slash, as the key of
    each cluster has.
    """

    kind = Alert
    partition, sort = "alert", "{cluster}"

    def get(self, cluster: str) -> Alert:  # type: ignore[override]
        """Read the alert of a cluster; an empty one if it needs no attention."""
        kept = super().get(cluster)
        return kept.value if kept else Alert()

    def first(self, most: int) -> Iterator[tuple[str, Alert]]:
        """Yield clusters that need attention, each with its alert: by name, `most` at most."""
        return ((cluster, alert.value) for cluster, alert in self.rows(limit=most))

    def put(self, cluster: str, alert: Alert) -> None:  # type: ignore[override]
        """Write the alert of a cluster, or delete it if it is empty; the last writer wins."""
        if alert == Alert():
            self.delete(cluster)
        else:
            super().put(cluster, alert)


class Heartbeats(Table[Heartbeat, str]):
    """The last heartbeat of each cluster's sender; ingest writes it once a minute at most.

    Of two that are written at once either is as good.
    """

    kind = Heartbeat
    partition, sort = "heard", "{cluster}"

    def get(self, cluster: str) -> Heartbeat | None:  # type: ignore[override]
        """Read the last heartbeat of a cluster; None if there was none."""
        kept = super().get(cluster)
        return kept.value if kept else None


class Callers:
    """Tokens with which API servers call ingest themselves, where no forwarder does, by cluster.

    A token stands in the cluster's webhook configuration, which resyncs write, so it has to be
    kept: sealed.
    """

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str) -> str:
        """Read a cluster's token; empty if there is none, or it is lost."""
        try:
            found = self._payloads.get("caller", cluster)
        except MissingError:
            return ""
        return str(found.payload) if found else ""

    def put(self, cluster: str, token: str) -> None:
        """Write a cluster's token, over the one before."""
        self._payloads.put("caller", cluster, {}, token)

    def delete(self, cluster: str) -> None:
        """Delete a cluster's token."""
        self._payloads.delete("caller", cluster)

    forget = delete


class InstallationId(Struct, frozen=True):
    """The id of an installation, and the address to which clusters send events.

    It is drawn once and moves with the records: a copy of the records, as a restored backup or an
    archive is, is the same installation. People know it by the address.
    """

    id: str
    address: str = ""


class Installations(Table[InstallationId]):
    """The one id of an installation."""

    kind = InstallationId
    partition, sort = "installation", "id"

    @until_written("write the installation's id")
    def get(self, address: str = "") -> InstallationId:  # type: ignore[override]
        """Return the id, drawn where there is none; an `address` is stored with it from then on.

        Raises:
            StaleError: other writers keep winning.
        """
        kept = super().get()
        if kept and address in ("", kept.value.address):
            return kept.value
        drawn = kept.value.id if kept else os.urandom(16).hex()
        found = InstallationId(drawn, address)
        self.put(found, expect=kept.token if kept else ABSENT)
        return found
