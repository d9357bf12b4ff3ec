"""Schedule: publishes what is due, and remembers nothing.

What has to happen later is a timer in the store, whoever set it: the retry of an outcome, a
cluster's next sweep or renewal, the tidying after one that left. This stage looks for those whose
time has come, each minute in a cloud and several times a second on one machine; two that look at
once publish a message twice at worst.

What a clock set that was ahead is pulled in once that is seen: by who ticks, by the house's own
timer, which fires within the hour, or when that fires.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from bellhop import messages
from bellhop.engine.pacing import PROBE_PAUSE, RENEWAL_PAUSE, spread, sweep_timer
from bellhop.errors import InvalidError, TemporaryError
from bellhop.logs import Log
from bellhop.messages import Envelope, Keep, Probe, Publisher, Renew, Sweep
from bellhop.records import Records
from bellhop.records.timers import Due
from bellhop.settings import Settings

_MOST = 500
"""Entries of a shard that one look publishes: what is left is due at the next."""

HOUSE = "keep"
"""The timer of the house's own work: collecting, and setting what timers are missing."""

_KEEPING = timedelta(hours=1)


class Ticked(NamedTuple):
    """How many messages a tick published, and the time of the earliest timer that was due."""

    published: int
    earliest: datetime | None


class Schedule:
    """Fires timers whose time has come."""

    def __init__(
        self, records: Records, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log

    def tick(self) -> Ticked:
        """Publish what is due."""
        now = self._records.clock.now()
        house = self._records.timers.get(HOUSE)
        if house is None:
            # The first time, or after the state was lost: begin with what must be set.
            self._records.timers.set(HOUSE, now, Keep().message().body)
        elif house.value.is_ahead(now):
            self.pull_in()
        published, earliest = 0, None
        for due in self._records.timers.due(now, limit=_MOST):
            if due.counts and due.timer:
                at = due.timer.value.at
                earliest = min(earliest or at, at)
            published += self._fire(due, now)
        return Ticked(published, earliest)

    def pull_in(self) -> None:
        """Set timers again that a clock set which was ahead."""
        if pulled := self._records.timers.pull_in(self._records.clock.now()):
            self._log.warning("Pulled in timers that a clock set which was ahead", timers=pulled)

    def _fire(self, due: Due, now: datetime) -> bool:
        if not due.counts or due.timer is None:
            self._records.timers.strike(due)
            return False
        try:
            message = messages.read(due.timer.value.body)
        except InvalidError as error:
            self._log.error("Cannot read a timer", error, name=due.timer.value.name)
            self._records.timers.end(due)
            self._records.timers.strike(due)
            return False
        except TemporaryError as error:
            # A newer version set it, and will publish it.
            self._log.warning("Left a timer", name=due.timer.value.name, error=str(error))
            return False
        self._publisher.publish([message])
        again = self._next(due.timer.value.name, message, now)
        if again is None:
            self._records.timers.end(due)
        else:
            self._records.timers.move(due, again)
        self._records.timers.strike(due)
        if isinstance(message, Keep):
            self.pull_in()
        return True

    def _next(self, name: str, message: Envelope, now: datetime) -> datetime | None:
        """Say when a timer fires again; None for those that fire once."""
        match message:
            case Sweep() if name == sweep_timer(message.cluster):
                if self._records.clusters.get(message.cluster) is None:
                    return None
                return now + spread(name, self._settings.sweep_interval)
            case Renew():
                if self._records.clusters.get(message.cluster) is None:
                    return None
                # Whoever does it sets the time that the record says; if it fails, this one counts.
                return now + RENEWAL_PAUSE
            case Probe():
                # As above; who finds that the cluster answers takes it away.
                return now + PROBE_PAUSE
            case Keep():
                return now + _KEEPING
        return None
