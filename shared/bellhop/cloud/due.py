"""What each tick of an installation's timer does."""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop import __version__
from bellhop.cloud.resources import Resources
from bellhop.records.timers import SKEW
from bellhop.stages.schedule import Schedule

_ON_TIME = timedelta(minutes=2)


class Due:
    """What the schedule publishes, and declarations that somebody began and abandoned.

    Hardly any tick finds one. So what finishes them, with all kinds that people may declare, is
    loaded by the tick that does.
    """

    def __init__(self, here: Resources) -> None:
        self._here = here
        self._records = here.records
        self._schedule = Schedule(here.records, here.publisher, here.settings, here.log)

    def tick(self) -> int:
        """Do what is due by now, and report the oldest pending work; return how many messages."""
        now, before = self._records.clock.now(), self._records.pulses.get()
        if before and before.at > now + SKEW:
            self._schedule.pull_in()
        ticked = self._schedule.tick()
        if self._records.pending.abandoned():
            self._finish()
        pending = self._pending(ticked.earliest, now)
        self._records.pulses.tick(before, self._records.clock.now(), __version__, pending)
        return ticked.published

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
        from bellhop.records.catalogs import Catalogs  # noqa: PLC0415 - dear, as above
        from bellhop.stages.declare import Declare  # noqa: PLC0415

        catalogs = Catalogs(self._records)
        Declare(self._records, catalogs, self._here.publisher, self._here.settings).resume()
