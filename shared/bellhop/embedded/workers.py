"""Threads that feed the stages of the embedded mode, and its schedule."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from bellhop.adapters.local.queue import SqliteQueue
from bellhop.embedded.baton import BATON
from bellhop.embedded.pool import Pool, Size
from bellhop.embedded.seats import Seats
from bellhop.embedded.state import NEVER_STUCK, Embedded
from bellhop.embedded.timekeeper import Timekeeper
from bellhop.logs import Log
from bellhop.messages import INBOXES
from bellhop.ports.queue import Delivery, GivenUp, Result
from bellhop.settings import Settings
from bellhop.stages.inbox import Inbox, Stage

_BATCH = 50
_LUMP = 16
_QUICK = 0.02
"""A thread that is done with what it took in fewer seconds takes twice as many groups the next
time, up to a lump: under load receiving and settling cost more than most work. Whoever takes
longer takes one, as does whoever may be stuck with it."""

_CROWDED = NEVER_STUCK | {"apply"}
"""Inboxes where one share may have so much to do that its work is all there is; where a walk or a
look waits for its cluster, others are started instead."""

_NOW = timedelta(0)
_TICK = 0.5
_RESTING = 3
"""So many times as long as it took a thread rests after a script that takes long."""

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
        self._in_hand: dict[str, tuple[SqliteQueue, tuple[Delivery, ...]]] = {}
        self._pools = []
        for name, size in sizes(settings).items():
            if INBOXES[name] in stages:
                inbox = Inbox(name, stages[INBOXES[name]], settings, log)
                seats = Seats(size.few if name in _CROWDED else 1)
                feed = self._feed(name, embedded.queues[name], inbox, seats)
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

    def _feed(
        self, name: str, queue: SqliteQueue, inbox: Inbox, seats: Seats
    ) -> Callable[[Callable[[], None], float], bool]:
        most = _LUMP if name in NEVER_STUCK else 1
        mine = threading.local()
        queue.keep_from(seats.full_for_all)

        def feed(begin: Callable[[], None], wait: float) -> bool:
            begun = time.monotonic()
            with BATON.held():
                groups = getattr(mine, "lump", 1)
                taken = queue.receive(_BATCH, wait=_NOW, groups=groups, but=seats.full)
                if taken:
                    if seats.take(taken):
                        queue.nudge()
                    begin()
                    begun = time.monotonic()
                    lasts = self._work(name, queue, inbox, taken)
            if not taken:
                # Who is woken takes it with the baton, and not beside who has that.
                seats.leave()
                queue.wait(timedelta(seconds=wait), but=seats.full)
                return False
            took = time.monotonic() - begun
            mine.lump = min(2 * lasts, most) if took < _QUICK else 1
            if name == "patient":
                self._stopping.wait(took * _RESTING)
            return True

        return feed

    def _work(self, name: str, queue: SqliteQueue, inbox: Inbox, taken: Sequence[Delivery]) -> int:
        """Work on what was taken, and settle it; return of how many groups it was."""
        me = threading.current_thread().name
        # The last of each group, which is held as a whole.
        lasts = {each.message.group: each for each in taken}
        self._in_hand[me] = queue, tuple(lasts.values())
        try:
            self._settle(name, queue, _in_turn(taken, inbox.work(taken)))
        finally:
            self._in_hand.pop(me, None)
        return len(lasts)

    def _settle(
        self, name: str, queue: SqliteQueue, worked: Iterable[tuple[Delivery, Result]]
    ) -> None:
        """Settle a lump as a whole, or what was done of it by then where it takes long."""
        done: list[tuple[Delivery, Result]] = []
        try:
            begun = time.monotonic()
            for each in worked:
                done.append(each)
                if time.monotonic() - begun > _QUICK:
                    self._settle_all(name, queue, done)
                    begun, done = time.monotonic(), []
        finally:
            if done:
                self._settle_all(name, queue, done)

    def _settle_all(
        self, name: str, queue: SqliteQueue, done: Sequence[tuple[Delivery, Result]]
    ) -> None:
        for became in queue.settle_all(done):
            if isinstance(became, GivenUp):
                self._log.warning(
                    "Moved a message to the dead letters", inbox=name, reason=became.reason
                )

    def _hold_on(self) -> None:
        """Keep what is in hand from being given to others while its worker is alive."""
        for queue, deliveries in list(self._in_hand.values()):
            for delivery in deliveries:
                queue.extend(delivery)

    def _repeat(self, work: Callable[[], object], pause: float) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - it outlives whatever it meets
                self._log.error("Failed to look what is due", error)
                self._stopping.wait(1.0)
            self._stopping.wait(pause)


def _in_turn(
    taken: Sequence[Delivery], worked: Iterator[tuple[Delivery, Result]]
) -> Iterator[tuple[Delivery, Result]]:
    """Work on each delivery for its own share."""
    for each in taken:
        BATON.go_on(each.message.share)
        yield next(worked)
