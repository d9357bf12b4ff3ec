"""What a thread of an inbox does: it takes messages, works on them, and takes what comes next.

    receive ─► work ─► settle, and take ─► work ─► settle, and take ─► … ─► nothing is left: wait

What is settled and what is taken next are one transaction: under load that is half of what the
inboxes' file is written for each message, and for as long other processes wait to write it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from bellhop.adapters.local.queue import SqliteQueue
from bellhop.embedded.baton import BATON
from bellhop.embedded.seats import Seats
from bellhop.embedded.state import NEVER_STUCK
from bellhop.logs import Log
from bellhop.ports.queue import Delivery, GivenUp, Result
from bellhop.stages.inbox import Inbox

_BATCH = 50
_LUMP = 16
_QUICK = 0.02
"""A thread that is done with what it took in fewer seconds takes twice as many groups the next
time, up to a lump: under load receiving and settling cost more than most work. Whoever takes
longer takes one, as does whoever may be stuck with it."""

_NOW = timedelta(0)
_RESTING = 3
"""So many times as long as it took a thread rests after a script that takes long."""

_Worked = tuple[Delivery, Result]


class _Mine(threading.local):
    lump = 1
    """Groups that this thread takes the next time."""


class Feed:
    """Feeds one inbox, by any number of threads at once."""

    def __init__(
        self,
        name: str,
        queue: SqliteQueue,
        inbox: Inbox,
        seats: Seats,
        stopping: threading.Event,
        log: Log,
    ) -> None:
        self._name = name
        self._queue = queue
        self._inbox = inbox
        self._seats = seats
        self._stopping = stopping
        self._log = log
        self._most = _LUMP if name in NEVER_STUCK else 1
        self._mine = _Mine()
        self._in_hand: dict[int, Sequence[Delivery]] = {}
        queue.keep_from(seats.full_for_all)

    def __call__(self, begin: Callable[[], None], wait: float) -> bool:
        """Work on messages for as long as there are any; wait where there are none at first.

        Call `begin` for each lot that was taken. Return whether there was any.
        """
        with BATON.held():
            taken = self._queue.receive(
                _BATCH, wait=_NOW, groups=self._mine.lump, but=self._seats.full
            )
            took = self._go_on(taken, begin)
        if not taken:
            # Who is woken takes it with the baton, and not beside who has that.
            self._seats.leave()
            self._queue.wait(timedelta(seconds=wait), but=self._seats.full)
            return False
        if self._name == "patient":
            self._stopping.wait(took * _RESTING)
        return True

    def hold_on(self) -> None:
        """Keep what is in hand from being given to others while its worker is alive."""
        for deliveries in list(self._in_hand.values()):
            for delivery in deliveries:
                self._queue.extend(delivery)

    def _go_on(self, taken: Sequence[Delivery], begin: Callable[[], None]) -> float:
        """Work on one lot after the other until nothing is left; return how long the last took."""
        me, took = threading.get_ident(), 0.0
        try:
            while taken:
                if self._seats.take(taken):
                    self._queue.nudge()
                begin()
                begun = time.monotonic()
                # The last of each group, which is held as a whole.
                lasts = {each.message.group: each for each in taken}
                self._in_hand[me] = tuple(lasts.values())
                done = self._work(taken)
                took = time.monotonic() - begun
                self._mine.lump = min(2 * len(lasts), self._most) if took < _QUICK else 1
                rests = self._name == "patient" or self._stopping.is_set()
                taken = self._settle(done, 0 if rests else _BATCH)
        finally:
            self._in_hand.pop(me, None)
        return took

    def _work(self, taken: Sequence[Delivery]) -> Sequence[_Worked]:
        """Work on what was taken, and return what is left to be settled.

        That is all of it, but where it takes long, or ends with an error.
        """
        done: list[_Worked] = []
        begun = time.monotonic()
        try:
            for number, each in enumerate(_in_turn(taken, self._inbox.work(taken)), 1):
                done.append(each)
                if number < len(taken) and time.monotonic() - begun > _QUICK:
                    settled, done = done, []
                    self._settle(settled, 0)
                    begun = time.monotonic()
        except BaseException:
            # Else it would be done again, once its time is up.
            if done:
                self._settle(done, 0)
            raise
        return done

    def _settle(self, done: Sequence[_Worked], more: int) -> Sequence[Delivery]:
        """Settle what was done, and take up to so many messages more."""
        results, taken = self._queue.exchange(
            done, more, groups=self._mine.lump, but=self._seats.full
        )
        for became in results:
            if isinstance(became, GivenUp):
                self._log.warning(
                    "Moved a message to the dead letters", inbox=self._name, reason=became.reason
                )
        return taken


def _in_turn(taken: Sequence[Delivery], worked: Iterator[_Worked]) -> Iterator[_Worked]:
    """Work on each delivery for its own share."""
    for each in taken:
        BATON.go_on(each.message.share)
        yield next(worked)
