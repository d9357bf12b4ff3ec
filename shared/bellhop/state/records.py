"""All records of an installation, by aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bellhop.catalog.records import CatalogRevision, Manifests, Pending, SetSelections, Snapshot
from bellhop.clusters.records import (
    Alerts,
    Callers,
    Circuits,
    Clusters,
    Gates,
    Healths,
    Heartbeats,
    Installations,
)
from bellhop.configuration.records import ConfiguredObjects, Confirmations, WrittenObjects
from bellhop.declarations.records import ApplySetLeases, HeldRemovals
from bellhop.deploy.gates.records import Dependents, RolloutStates
from bellhop.deploy.records import (
    DependencyIndex,
    DeploymentStatuses,
    Inventories,
    Orphans,
    Owners,
    Previews,
    ReloadIndex,
    Watches,
)
from bellhop.events.records import (
    AccessReviews,
    HeldDeletions,
    Matches,
    Selections,
    SlowScripts,
    SourceIndexes,
)
from bellhop.extras.classifiers.records import Classifications
from bellhop.extras.health.records import Conditions
from bellhop.ingest.records import (
    Arrivals,
    Issuers,
    Observations,
    Receipts,
    RefusalCounts,
    RequestLimits,
    Senders,
)
from bellhop.ports.clock import Clock
from bellhop.ports.store import Blobs, Item, Store
from bellhop.profiles.records import (
    NameReservationRecords,
    ProfileClusters,
    Profiles,
    RevisionRecords,
)
from bellhop.promotions.records import FrozenContents, Pins, Promotions, Releases
from bellhop.resync.records import DeletionConfirmations, ResyncProgresses
from bellhop.state.event_log import Bounds, EventLog
from bellhop.state.heartbeats import WorkerHeartbeats
from bellhop.state.installation_moves import Moves
from bellhop.state.payloads import SHORT, Payloads, Sealed
from bellhop.state.retries import Retries
from bellhop.state.sealer import Sealer
from bellhop.state.timers import Timers
from bellhop.state.versions import SCHEMAS, Versioned


class Records:
    """Typed records over a Store, a blob store and a Sealer.

    They hold no state of their own, but for lines of the event log that are flushed later.
    Sealed payloads of up to `short` bytes lie in their heads.
    """

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        sealer: Sealer,
        clock: Clock,
        bounds: Bounds | None = None,
        *,
        short: int = SHORT,
        schemas: Mapping[str, int] = SCHEMAS,
    ) -> None:
        self.store = store = Versioned(store, schemas)
        self.clock = clock
        self._payloads = Payloads(store, blobs, sealer, clock, short=short)
        self.clusters = Clusters(store)
        self.choices, self.written = SetSelections(self._payloads), WrittenObjects(store)
        self.health = Healths(self._payloads)
        self.classified, self.circuits = Classifications(self._payloads), Circuits(store)
        self.alerts, self.confirmations = Alerts(store), Confirmations(store)
        self.promotions, self.releases = Promotions(store), Releases(self._payloads)
        self.pins, self.frozen = Pins(self._payloads), FrozenContents(self._payloads)
        self.walks = ResyncProgresses(store, clock)
        self.strikes, self.gates = DeletionConfirmations(store), Gates(self._payloads)
        self.refusals = RefusalCounts(store)
        self.looks = RequestLimits(store, "look")
        self.issuers = Issuers(store)
        self.callers = Callers(self._payloads)
        self.senders = Senders(self._payloads)
        self.receipts = Receipts(store)
        self.inquiries = RequestLimits(store, "inquiry")
        self.hearings = Heartbeats(store)
        self.pulses = WorkerHeartbeats(store)
        self.manifests, self.configured = Manifests(self._payloads), ConfiguredObjects(store)
        self.catalog = CatalogRevision(store, self._payloads.trash, clock)
        self.snapshot = Snapshot(blobs, sealer, self.catalog)
        self.pending, self.applysets = Pending(self._payloads, clock), ApplySetLeases(store, clock)
        self.observations = Observations(self._payloads, clock)
        self.arrivals = Arrivals(store)
        self.matches = Matches(store)
        self.holds = HeldDeletions(store, self._payloads.apart())
        self.selections = Selections(self._payloads)
        self.departures, self.removals = ProfileClusters(store, "leaving"), HeldRemovals(store)
        self.trails = SourceIndexes(store, clock)
        self.paces = SlowScripts(store, clock)
        self.permits = AccessReviews(store)
        self.profiles = Profiles(self._payloads, self.departures)
        self.renderings = RevisionRecords(self._payloads)
        self.titles = NameReservationRecords(store)
        self.owners = Owners(store)
        self.inventories = Inventories(self._payloads, self.owners)
        self.findings, self.watches = Orphans(store, clock), Watches(store)
        self.mounts, self.readers = ReloadIndex(store), DependencyIndex(store)
        self.outcomes = DeploymentStatuses(store)
        self.rotas, self.queued = RolloutStates(store), ProfileClusters(store, "queued")
        self.waiting = Dependents(store, "waiting")
        self.needing = Dependents(store, "needing")
        self.conditions = Conditions(store)
        self.previews = Previews(self._payloads)
        self.ledger = EventLog(store, bounds)
        self.timers, self.retries = Timers(store, clock), Retries(store, clock)
        self.moves, self.installations = Moves(store), Installations(store)

    def opened(self, partition: str, sort: str) -> Sealed | None:
        """Read any record as it is, opened, for who moves it to another installation.

        Raises:
            MissingError: its payload is lost.
        """
        return self._payloads.get(partition, sort)

    def put_opened(
        self,
        partition: str,
        sort: str,
        head: Mapping[str, Any],
        payload: Any,
        expires_at: str | None,
    ) -> None:
        """Write an item that `opened` read from another store, over whatever is there."""
        at = datetime.fromisoformat(expires_at) if expires_at else None
        old = self.store.get(partition, sort)
        self._payloads.follow(old, Item(partition, sort, head, expires_at=at), payload)

    def forget_cluster(self, key: str) -> None:
        """Delete a cluster and the access of its senders; `forget_traces` deletes the rest."""
        self.clusters.forget(key)
        self.gates.forget(key)
        self._forget_access(key)

    def forget_traces(self, key: str) -> None:
        """Delete all other records of a cluster: of its objects, their matches and add-ons."""
        for table in (
            *(self.observations, self.arrivals, self.matches, self.holds, self.selections),
            *(self.trails, self.permits, self.readers, self.outcomes, self.waiting, self.needing),
            *(self.conditions, self.previews, self.strikes, self.walks, self.health),
            *(self.classified, self.refusals, self.circuits, self.alerts, self.looks),
            *(self.inquiries, self.receipts, self.hearings),
        ):
            table.forget(key)
        self.forget_holdings(key)
        self._forget_access(key)

    def forget_holdings(self, key: str) -> None:
        """Delete the records of add-ons in a cluster that is forgotten."""
        for table in (self.inventories, self.owners, self.findings, self.watches, self.mounts):
            table.forget(key)

    def _forget_access(self, key: str) -> None:
        for table in (self.issuers, self.callers, self.senders):
            table.forget(key)

    def doubt_holdings(self, key: str) -> None:
        """Record all add-ons in a cluster as uncertain: it is not what it was.

        Inventories stay: another worker may have written to one what is in the new cluster already.
        """
        for inventory in list(self.inventories.of(key)):
            self.inventories.doubt(key, inventory.profile, None)

    def collect(self, now: datetime) -> int:
        """Delete blobs that no record has named for a day; return how many there were.

        And lines beyond the event log's bounds. For the schedule: once in an hour is enough.
        """
        self.ledger.trim(now)
        return self._payloads.trash.collect(now)
