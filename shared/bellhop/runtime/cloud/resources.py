"""What a function works with: an installation's records and queues, whatever they lie on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from msgspec import Struct

from bellhop.adapters.local.clock import SystemClock
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.logs import Log
from bellhop.ports.blobs import Blobs
from bellhop.ports.queue import DeadLetters, Queue, Watched
from bellhop.ports.store import Store
from bellhop.runtime.cloud.environment import Range
from bellhop.runtime.cloud.event_log import LoggedEventLog
from bellhop.settings import Settings
from bellhop.state.event_log import Bounds
from bellhop.state.messages import Publisher
from bellhop.state.record import Entry
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer

ATTENTION = "Something needs attention"
"""The line of an alert, which Google Cloud's metric counts."""


class CloudQueue(Queue, DeadLetters, Watched, Protocol):
    """An inbox as those see it who publish into it, and those who look after it."""


class Resources(Struct, frozen=True, kw_only=True):
    """An installation as its functions see it.

    `secrets` is how secrets' names begin; `reach` says which addresses clusters may have, and
    `ingest_allow` from which they may send, any if there is none.
    """

    settings: Settings
    records: Records
    queues: Mapping[str, CloudQueue]
    publisher: Publisher
    secrets: str
    ingest_url: str
    log: Log
    reach: AddressPolicy = PUBLIC
    ingest_allow: tuple[Range, ...] = ()

    @property
    def contents(self) -> AddressPolicy:
        """Return the reach of what profiles name: charts, files, registries, metrics."""
        return self.reach.within(self.settings.egress_allow)

    def begin(self) -> None:
        """Begin an event."""

    def report_pending(self, age: timedelta) -> None:
        """Log how old the oldest pending work is."""
        seconds = round(age.total_seconds())
        self.log.info("Measured the oldest pending work", pendingSeconds=seconds)

    def report_alert(self, name: str, count: int, clusters: Sequence[str]) -> None:
        """Log how often an alert is the case: a line for each named cluster, one for all others."""
        for cluster in clusters:
            self.log.info(ATTENTION, alert=name, cluster=cluster)
        if count > len(clusters):
            self.log.info(ATTENTION, alert=name, others=count - len(clusters))

    def count_refusal(self, status: int) -> None:
        """Count a request that was refused, where nobody else does."""

    def end(self) -> None:
        """Write what is at hand when an event is done: nobody may be there to do it later."""
        if lost := self.records.ledger.flush():
            self.log.warning("Lost lines of the event log: the store did not take them", lines=lost)


def records_over(store: Store, blobs: Blobs, sealer: Sealer, settings: Settings) -> Records:
    """Make the records of an installation over what a cloud has for them."""
    return Records(store, blobs, sealer, SystemClock(), _bounds(settings))


def tell(
    records: Records, settings: Settings, log: Log, count: Callable[[Entry], None] | None = None
) -> None:
    """Have the ledger's lines logged, too, and written when the work at hand is done."""
    records.ledger = LoggedEventLog(records.store, _bounds(settings), log, count)
    records.ledger.gather()


def _bounds(settings: Settings) -> Bounds:
    return Bounds(timedelta(days=settings.ledger_days), settings.ledger_megabytes * 1024 * 1024)
