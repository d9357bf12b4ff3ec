"""Renewals as a process does them: the schedule publishes what is due, and somebody works on it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.queue import Delivery
from bellhop.registration.due_renewals import Renewals
from bellhop.registration.renewal import find_next
from bellhop.runtime.handlers import Handlers
from bellhop.state.consumer import Inbox
from bellhop.state.messages import Renew
from bellhop.state.schedule import Schedule


def renewals_due(here: Installation) -> list[str]:
    """Return the clusters whose records say that something is due by now."""
    now = here.records.clock.now()
    found = ((find_next(each, now), each.key) for each in here.records.clusters.all())
    return [key for at, key in sorted((at, key) for at, key in found if at) if at <= now]


class Renewer:
    """A process that renews, and does no more."""

    def __init__(self, here: Installation, queue: Any, log: Log) -> None:
        self._schedule = Schedule(here.records, here.publisher, here.settings, log)
        self._inbox = Inbox(
            "sweep", Handlers("sweep", {Renew: Renewals(here, log).handle}), here.settings, log
        )
        self._queue = queue

    def tick(self) -> int:
        """Do what is due by now; return how many renewals were asked for."""
        self._schedule.tick()
        asked = 0
        for delivery in self._taken():
            asked += delivery.message.body["do"] == Renew.do
            for each, result in self._inbox.work([delivery]):
                self._queue.settle(each, result)
        return asked

    def _taken(self) -> Iterator[Delivery]:
        while deliveries := self._queue.receive(1, wait=timedelta(0)):
            yield from deliveries
