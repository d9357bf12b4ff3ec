"""Threads that feed the stages of the embedded mode, and its schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from bellhop.embedded.feed import Feed
from bellhop.embedded.pool import Pool, Size
from bellhop.embedded.seats import Seats
from bellhop.embedded.state import NEVER_STUCK, Embedded
from bellhop.embedded.timekeeper import Timekeeper
from bellhop.logs import Log
from bellhop.messages import INBOXES
from bellhop.settings import Settings
from bellhop.stages.inbox import Inbox, Stage

_CROWDED = NEVER_STUCK | {"apply"}
"""Inboxes where one share may have so much to do that its work is all there is; where a walk or a
look waits for its cluster, others are started instead."""

_TICK = 0.5

_EXTENSIONS = 4
"""How often in a visibility timeout what is in hand is held for longer."""

_MOST = 64
"""Threads of an inbox whose work may wait for clusters that do not answer."""


def sizes(settings: Settings) -> Mapping[str, Size]:
    """Say how many threads feed each inbox; those that never call a cluster are never stuck."""
    return {
        "evaluate": Size(2, 2),
        "review": Size(1, 1),
        "patient": Size(1, 1),
        "deploy": Size(2, 2),
        "apply": Size(settings.workers, settings.workers + _MOST),
        "confirm": Size(2, 2 + _MOST),
        "sweep": Size(2, 2 + _MOST),
        "probe": Size(2, 2 + _MOST),
    }


class Workers:
    """Threads that feed the stages until they are told to stop; one process keeps the time."""

    def __init__(
        self, embedded: Embedded, stages: dict[str, Stage], log: Log, *, leads: bool = True
    ) -> None:
        settings = embedded.installation.settings
        self._log = log
        self._stopping = threading.Event()
        self._queues = tuple(embedded.queues.values())
        self._feeds: list[Feed] = []
        self._pools: list[Pool] = []
        for name, size in sizes(settings).items():
            if INBOXES[name] in stages:
                inbox = Inbox(name, stages[INBOXES[name]], settings, log)
                seats = Seats(size.few if name in _CROWDED else 1)
                feed = Feed(name, embedded.queues[name], inbox, seats, self._stopping, log)
                self._feeds.append(feed)
                self._pools.append(Pool(name, feed, size, log))
        pause = settings.visibility.total_seconds() / _EXTENSIONS
        self._threads = [
            threading.Thread(target=self._repeat, args=(self._hold_on, pause), name="holding")
        ]
        if leads:
            tick = Timekeeper(embedded, log).tick
            schedule = threading.Thread(target=self._repeat, args=(tick, _TICK), name="schedule")
            self._threads.append(schedule)

    def start(self) -> None:
        """Begin to work."""
        for pool in self._pools:
            pool.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is in hand and end."""
        self._stopping.set()
        # Before any is waited for: who has nothing to do would look for it again and again.
        for pool in self._pools:
            pool.end()
        for queue in self._queues:
            queue.wake()
        for pool in self._pools:
            pool.stop()
        for thread in self._threads:
            thread.join()

    def _hold_on(self) -> None:
        """Keep what is in hand from being given to others while its worker is alive."""
        for feed in self._feeds:
            feed.hold_on()

    def _repeat(self, work: Callable[[], object], pause: float) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - it outlives whatever it meets
                self._log.error("Failed to look what is due", error)
                self._stopping.wait(1.0)
            self._stopping.wait(pause)
