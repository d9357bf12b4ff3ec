"""When the schedule of one machine looks what is due: only where there is reason to.

A look is a score of questions to the store. While nobody writes, its answer is known: nothing is
due before the earliest timer that the last look saw. So a tick asks one thing, whether anybody has
written since, here or in another process; and a look is taken now and then whatever that says.

The clock may be set: what passes by it is compared with what passes since the machine booted. A
jump is written with the pulse; after one back, what was set by the clock that was ahead is pulled
in.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop import __version__
from bellhop.errors import BellhopError
from bellhop.logs import Log
from bellhop.runtime.embedded.state import Embedded
from bellhop.state.record import WorkerHeartbeat
from bellhop.state.schedule import Schedule
from bellhop.state.timers import SKEW

AT_MOST = timedelta(seconds=5)
"""How long nobody looks."""

PULSE = timedelta(seconds=30)
"""How often it is written that the process is there."""


class Timekeeper:
    """Ticks for one thread."""

    def __init__(self, embedded: Embedded, log: Log) -> None:
        here = embedded.installation
        self._embedded = embedded
        self._clock = here.records.clock
        self._schedule = Schedule(here.records, here.publisher, here.settings, log)
        self._log = log
        self._mark: object = None
        self._look_at = self._clock.now()
        self._pulse = WorkerHeartbeat(self._look_at, self._look_at - PULSE, __version__)
        self._ticked: tuple[datetime, timedelta] | None = None

    def tick(self) -> bool:
        """Publish what is due, finish what was begun and abandoned; say whether it looked."""
        self._heed_jumps()
        self._beat(self._clock.now())
        # Read before the look: what is written meanwhile is reason for another one.
        mark, now = self._embedded.store.mark(), self._clock.now()
        if mark == self._mark and self._look_at - AT_MOST <= now < self._look_at:
            return False
        self._look()
        due = self._embedded.installation.records.timers.next_at()
        self._mark, self._look_at = mark, min(due or now + AT_MOST, now + AT_MOST)
        return True

    def _heed_jumps(self) -> None:
        """See whether the clock was set since the last tick, or went back before this process."""
        now, steady = self._clock.now(), self._clock.steady()
        before, self._ticked = self._ticked, (now, steady)
        if before is None:
            self._schedule.pull_in()
            return
        jumped = (now - before[0]) - (steady - before[1])
        if abs(jumped) < SKEW:
            return
        seconds = round(jumped.total_seconds(), 1)
        off = self._pulse.off + seconds
        self._log.warning("The clock of this machine jumped", seconds=seconds, off=off)
        self._pulse = replace(
            self._pulse, at=now - PULSE, jumped_at=now, jumped=seconds, off=round(off, 1)
        )
        if jumped < timedelta(0):
            self._schedule.pull_in()

    def _beat(self, now: datetime) -> None:
        """Write that we are there; what cannot be written is seen by that."""
        if timedelta(0) <= now - self._pulse.at < PULSE:
            return
        self._pulse = replace(self._pulse, at=now)
        with suppress(BellhopError):
            self._embedded.installation.records.pulses.put(self._pulse)

    def _look(self) -> None:
        self._schedule.tick()
        self._embedded.installation.declare.resume()
        self._embedded.store.sweep_expired()
