"""What each tick of an installation's timer does."""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop import __version__
from bellhop.core.first_error import Failures
from bellhop.runtime.cloud.resources import Resources
from bellhop.state.record import WorkerHeartbeat
from bellhop.state.schedule import SPELL, Schedule, Ticked
from bellhop.state.timers import SKEW
from bellhop.state.worker_pool import WorkerPool

_ON_TIME = timedelta(minutes=2)

HELPERS = 15
"""Threads that help a tick: nearly all of a timer's time is waiting for a cloud."""


class Due:
    """What the schedule publishes, and declarations that somebody began and abandoned.

    The heartbeat comes first, and delayed messages come before timers, of which a fleet may have
    more than one tick publishes. A step that fails keeps no other from being done.

    Hardly any tick finds an abandoned declaration. So what finishes them, with all kinds that
    people may declare, is loaded by the tick that does.
    """

    def __init__(self, here: Resources, hands: WorkerPool | None = None) -> None:
        self._here = here
        self._records = here.records
        hands = hands or WorkerPool(HELPERS, at_one=HELPERS)
        self._schedule = Schedule(here.records, here.publisher, here.settings, here.log, hands)

    def tick(self) -> int:
        """Do what is due by now, and report the oldest pending work; return how many messages.

        Raises:
            Exception: a step failed, the first of them; all others were done.
        """
        failures, published, ticked = Failures(), 0, Ticked(0, None)
        until = self._records.clock.steady() + SPELL
        now, before = self._records.clock.now(), self._records.pulses.get()
        with failures.isolated("heartbeat"):
            self._beat(before, now, before.pending if before else None)
        with failures.isolated("delayed messages"):
            published = self.publish_delayed()
        ahead = before is not None and before.at > now + SKEW
        with failures.isolated("timers"):
            ticked = self._schedule.tick(until=until, ahead=ahead)
        with failures.isolated("declarations"):
            if self._records.pending.abandoned():
                self._finish()
        with failures.isolated("pending work"):
            self._report(before, ticked.earliest, now)
        with failures.isolated("the rest"):
            self.conclude()
        failures.end()
        return published + ticked.published

    def publish_delayed(self) -> int:
        """Publish messages whose pause is over, where no queue does; return how many."""
        return 0

    def conclude(self) -> None:
        """Do what else a cloud has for each tick."""

    def _beat(self, before: WorkerHeartbeat | None, at: datetime, pending: datetime | None) -> None:
        self._records.pulses.tick(before, at, __version__, pending)

    def _report(
        self, before: WorkerHeartbeat | None, earliest: datetime | None, now: datetime
    ) -> None:
        """Report since when the oldest work waits: the heartbeat had what was known before."""
        pending = self._pending(earliest, now)
        if pending != (before.pending if before else None):
            self._beat(before, self._records.clock.now(), pending)

    def _pending(self, earliest: datetime | None, now: datetime) -> datetime | None:
        """Return since when the oldest work waits: a timer that was late, or a retried message.

        What waits for less than two ticks is on time, and is not reported.
        """
        found = [at for at in (earliest, self._records.retries.oldest()) if at]
        oldest = min(found, default=now)
        if now - oldest < _ON_TIME:
            return None
        self._here.report_pending(now - oldest)
        return oldest

    def _finish(self) -> None:
        from bellhop.catalog.cache import Catalogs  # noqa: PLC0415 - dear, as above
        from bellhop.declarations.apply import ManifestWriter  # noqa: PLC0415

        catalogs = Catalogs(self._records)
        ManifestWriter(self._records, catalogs, self._here.publisher, self._here.settings).resume()
