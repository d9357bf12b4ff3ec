"""All records of an installation, by aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bellhop.ports.blobs import Blobs
from bellhop.ports.clock import Clock
from bellhop.ports.store import Item, Store
from bellhop.records.alerts import Alerts
from bellhop.records.applysets import ApplySetLeases
from bellhop.records.arrivals import Arrivals
from bellhop.records.callers import Callers
from bellhop.records.choices import Choices
from bellhop.records.circuits import Circuits
from bellhop.records.classifieds import Classifieds
from bellhop.records.clusters import Clusters, Gates, Healths
from bellhop.records.conditions import Conditions
from bellhop.records.declared import CatalogRevision, Manifests, Pending
from bellhop.records.departures import Departures
from bellhop.records.followers import Followers
from bellhop.records.hearings import Hearings
from bellhop.records.holdings import Findings, Inventories, Owners
from bellhop.records.holds import Holds
from bellhop.records.installations import Installations
from bellhop.records.issuers import Issuers
from bellhop.records.ledger import Bounds, Ledger
from bellhop.records.looks import Looks
from bellhop.records.matches import Matches
from bellhop.records.mounts import Mounts
from bellhop.records.moves import Moves
from bellhop.records.observations import Observations
from bellhop.records.outcomes import Outcomes
from bellhop.records.paces import Paces
from bellhop.records.payloads import SHORT, Payloads, Sealed
from bellhop.records.permits import Permits
from bellhop.records.previews import Previews
from bellhop.records.profiles import Profiles
from bellhop.records.pulses import Pulses
from bellhop.records.readers import Readers
from bellhop.records.refusals import RefusalCounts
from bellhop.records.removals import HeldRemovals
from bellhop.records.renderings import Renderings
from bellhop.records.retries import Retries
from bellhop.records.rotas import Rotas
from bellhop.records.sealing import Sealer
from bellhop.records.selections import Selections
from bellhop.records.senders import Receipts, Senders
from bellhop.records.snapshot import Snapshot
from bellhop.records.timers import Timers
from bellhop.records.titles import Titles
from bellhop.records.trails import Trails
from bellhop.records.versions import SCHEMAS, Versioned
from bellhop.records.walks import Strikes, Walks
from bellhop.records.watches import Watches


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
        self.choices = Choices(self._payloads)
        self.health = Healths(self._payloads)
        self.classified = Classifieds(self._payloads)
        self.circuits, self.alerts = Circuits(store), Alerts(store)
        self.walks = Walks(store, clock)
        self.strikes = Strikes(store)
        self.gates = Gates(self._payloads)
        self.refusals = RefusalCounts(store)
        self.looks = Looks(store, "look")
        self.issuers = Issuers(store)
        self.callers = Callers(self._payloads)
        self.senders = Senders(self._payloads)
        self.receipts = Receipts(store)
        self.inquiries = Looks(store, "inquiry")
        self.hearings = Hearings(store)
        self.pulses = Pulses(store)
        self.manifests = Manifests(self._payloads)
        self.catalog = CatalogRevision(store, self._payloads.trash, clock)
        self.snapshot = Snapshot(blobs, sealer, self.catalog)
        self.pending, self.applysets = Pending(self._payloads, clock), ApplySetLeases(store, clock)
        self.observations = Observations(self._payloads, clock)
        self.arrivals = Arrivals(store)
        self.matches = Matches(store)
        self.holds = Holds(store, self._payloads.apart())
        self.selections = Selections(self._payloads)
        self.departures, self.removals = Departures(store), HeldRemovals(store)
        self.trails = Trails(store, clock)
        self.paces = Paces(store, clock)
        self.permits = Permits(store)
        self.profiles = Profiles(self._payloads, self.departures)
        self.renderings = Renderings(self._payloads)
        self.titles = Titles(store)
        self.owners = Owners(store)
        self.inventories = Inventories(self._payloads, self.owners)
        self.findings = Findings(store, clock)
        self.watches = Watches(store)
        self.mounts, self.readers = Mounts(store), Readers(store)
        self.outcomes = Outcomes(store)
        self.rotas = Rotas(store)
        self.waiting = Followers(store, "waiting")
        self.needing = Followers(store, "needing")
        self.conditions = Conditions(store)
        self.previews = Previews(self._payloads)
        self.ledger = Ledger(store, ledger)
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
