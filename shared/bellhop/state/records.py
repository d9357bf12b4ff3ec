"""All records of an installation, by aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bellhop.catalog.records.manifests import CatalogRevision, Manifests, Pending
from bellhop.catalog.records.set_choices import SetSelections
from bellhop.catalog.records.snapshot import Snapshot
from bellhop.clusters.records.alerts import Alerts
from bellhop.clusters.records.circuits import Circuits
from bellhop.clusters.records.clusters import Clusters, Gates, Healths
from bellhop.clusters.records.installations import Installations
from bellhop.declarations.records.applysets import ApplySetLeases
from bellhop.declarations.records.held_removals import HeldRemovals
from bellhop.deploy.records.dependencies import DependencyIndex
from bellhop.deploy.records.dependents import Dependents
from bellhop.deploy.records.inventories import Inventories, Orphans, Owners
from bellhop.deploy.records.previews import Previews
from bellhop.deploy.records.reload_index import ReloadIndex
from bellhop.deploy.records.rollouts import RolloutStates
from bellhop.deploy.records.statuses import DeploymentStatuses
from bellhop.deploy.records.watches import Watches
from bellhop.events.records.access_reviews import AccessReviews
from bellhop.events.records.held_deletions import HeldDeletions
from bellhop.events.records.matches import Matches
from bellhop.events.records.selections import Selections
from bellhop.events.records.slow_scripts import SlowScripts
from bellhop.events.records.source_index import SourceIndexes
from bellhop.extras.classifiers.records import Classifications
from bellhop.extras.health.records import Conditions
from bellhop.ingest.records.arrivals import Arrivals
from bellhop.ingest.records.callers import Callers
from bellhop.ingest.records.heartbeats import Heartbeats
from bellhop.ingest.records.issuers import Issuers
from bellhop.ingest.records.observations import Observations
from bellhop.ingest.records.refusals import RefusalCounts
from bellhop.ingest.records.resync_requests import RequestLimits
from bellhop.ingest.records.senders import Receipts, Senders
from bellhop.ports.blobs import Blobs
from bellhop.ports.clock import Clock
from bellhop.ports.store import Item, Store
from bellhop.profiles.records.names import NameReservationRecords
from bellhop.profiles.records.pending_removals import PendingRemovals
from bellhop.profiles.records.profiles import Profiles
from bellhop.profiles.records.revisions import RevisionRecords
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

    They hold no state of their own, but for lines of the ledger where somebody flushes them.
    Sealed payloads of up to `short` bytes lie in their heads.
    """

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        sealer: Sealer,
        clock: Clock,
        ledger: Bounds | None = None,
        *,
        short: int = SHORT,
        schemas: Mapping[str, int] = SCHEMAS,
    ) -> None:
        self.store = store = Versioned(store, schemas)
        self.clock = clock
        self._payloads = Payloads(store, blobs, sealer, clock, short=short)
        self.clusters = Clusters(store)
        self.choices = SetSelections(self._payloads)
        self.health = Healths(self._payloads)
        self.classified = Classifications(self._payloads)
        self.circuits, self.alerts = Circuits(store), Alerts(store)
        self.walks = ResyncProgresses(store, clock)
        self.strikes = DeletionConfirmations(store)
        self.gates = Gates(self._payloads)
        self.refusals = RefusalCounts(store)
        self.looks = RequestLimits(store, "look")
        self.issuers = Issuers(store)
        self.callers = Callers(self._payloads)
        self.senders = Senders(self._payloads)
        self.receipts = Receipts(store)
        self.inquiries = RequestLimits(store, "inquiry")
        self.hearings = Heartbeats(store)
        self.pulses = WorkerHeartbeats(store)
        self.manifests = Manifests(self._payloads)
        self.catalog = CatalogRevision(store, self._payloads.trash, clock)
        self.snapshot = Snapshot(blobs, sealer, self.catalog)
        self.pending, self.applysets = Pending(self._payloads, clock), ApplySetLeases(store, clock)
        self.observations = Observations(self._payloads, clock)
        self.arrivals = Arrivals(store)
        self.matches = Matches(store)
        self.holds = HeldDeletions(store, self._payloads.apart())
        self.selections = Selections(self._payloads)
        self.departures, self.removals = PendingRemovals(store), HeldRemovals(store)
        self.trails = SourceIndexes(store, clock)
        self.paces = SlowScripts(store, clock)
        self.permits = AccessReviews(store)
        self.profiles = Profiles(self._payloads, self.departures)
        self.renderings = RevisionRecords(self._payloads)
        self.titles = NameReservationRecords(store)
        self.owners = Owners(store)
        self.inventories = Inventories(self._payloads, self.owners)
        self.findings = Orphans(store, clock)
        self.watches = Watches(store)
        self.mounts, self.readers = ReloadIndex(store), DependencyIndex(store)
        self.outcomes = DeploymentStatuses(store)
        self.rotas = RolloutStates(store)
        self.waiting = Dependents(store, "waiting")
        self.needing = Dependents(store, "needing")
        self.conditions = Conditions(store)
        self.previews = Previews(self._payloads)
        self.ledger = EventLog(store, ledger)
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
        """Write what `opened` read elsewhere, over whatever is there."""
        at = datetime.fromisoformat(expires_at) if expires_at else None
        old = self.store.get(partition, sort)
        self._payloads.follow(old, Item(partition, sort, head, expires_at=at), payload)

    def forget_cluster(self, key: str) -> None:
        """Delete a cluster, and with it who may send for it; `forget_traces` does the rest."""
        self.clusters.delete(key)
        self.gates.delete(key)
        self.issuers.delete(key)
        self.callers.delete(key)
        self.senders.forget(key)

    def forget_traces(self, key: str) -> None:
        """Delete what was observed, matched and applied in a cluster, and how it was."""
        self._payloads.forget(f"observation/{key}")
        self.arrivals.forget(key)
        self.matches.forget(key)
        self.holds.forget(key)
        self.selections.forget(key)
        self.trails.forget(key)
        self.permits.forget(key)
        self.forget_holdings(key)
        self.readers.forget(key)
        self.outcomes.forget(key)
        self.waiting.forget(key)
        self.needing.forget(key)
        self.conditions.forget(key)
        self.previews.forget(key)
        self.strikes.forget(key)
        self.walks.forget(key)
        self.health.delete(key)
        self.classified.delete(key)
        self.refusals.forget(key)
        self.circuits.delete(key)
        self.alerts.delete(key)
        self.looks.delete(key)
        self.inquiries.delete(key)
        self.issuers.delete(key)
        self.callers.delete(key)
        self.senders.forget(key)
        self.receipts.forget(key)
        self.hearings.delete(key)

    def doubt_holdings(self, key: str) -> None:
        """Take nothing for certain that profiles hold in a cluster: it is not what it was.

        Inventories stay: somebody may have written to one what is in the new cluster already.
        """
        for inventory in list(self.inventories.of(key)):
            self.inventories.doubt(key, inventory.profile, None)

    def forget_holdings(self, key: str) -> None:
        """Delete what profiles own in a cluster that is forgotten."""
        self._payloads.forget(f"inventory/{key}")
        self.owners.forget(key)
        self.findings.forget(key)
        self.watches.forget(key)
        self.mounts.forget(key)

    def collect(self, now: datetime) -> int:
        """Delete blobs that no record has named for a day; return how many there were.

        And lines beyond the ledger's bounds. For the schedule: once in an hour is enough.
        """
        self.ledger.trim(now)
        return self._payloads.trash.collect(now)
