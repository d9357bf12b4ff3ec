"""What each tick of an installation's timer does."""

from __future__ import annotations

from bellhop import __version__
from bellhop.cloud.resources import Resources
from bellhop.records.timers import SKEW
from bellhop.stages.schedule import Schedule


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
        """Do what is due by now; return how many messages that were."""
        now, before = self._records.clock.now(), self._records.pulses.get()
        if before and before.at > now + SKEW:
            self._schedule.pull_in()
        published = self._schedule.tick()
        if self._records.pending.abandoned():
            self._finish()
        self._records.pulses.tick(before, self._records.clock.now(), __version__)
        return published

    def _finish(self) -> None:
        from bellhop.records.catalogs import Catalogs  # noqa: PLC0415 - dear, as above
        from bellhop.stages.declare import Declare  # noqa: PLC0415

        catalogs = Catalogs(self._records)
        Declare(self._records, catalogs, self._here.publisher, self._here.settings).resume()
