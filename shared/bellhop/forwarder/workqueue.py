"""Whose turn it is to be looked at: one entry for each object, by due time, spooled on disk.

    ring ──► waiting ──take──► in a reader's hands ──finish──► (outbox) ──forget──► gone
                ▲                       │
                └───────later───────────┘      a hint meanwhile waits in `behind`

Nothing polls: a reader sleeps until the earliest entry is due or an earlier one comes.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.errors import BellhopError
from bellhop.forwarder.journal import Journal
from bellhop.forwarder.pending import Known, PendingObject
from bellhop.forwarder.read_delay import ReadDelay
from bellhop.ingest.admission import Hint
from bellhop.logs import Log

FIRST_LOOK_BLIND = 0.05
"""Seconds until the first look where a hint does not tell the state before: one look must do."""

BURST = 0.05
"""For how long hints on one object may put off its next look."""


@dataclass(slots=True)
class QueueItem:
    """An object in a reader's hands, with how often it was looked at and could not be.

    `refused_at` is the monotonic time of the first of those failures.
    """

    debt: PendingObject
    looks: int = 0
    failures: int = 0
    refused_at: float = 0.0


@dataclass(slots=True)
class _Entry:
    turn: QueueItem
    due: float
    latest: float
    taken: bool = False
    behind: PendingObject | None = None


class DelayingQueue:
    """Objects that are owed; shared between threads.

    `unspooled` is called where a hint is only in memory, so that a kill would lose it; `clock`
    returns monotonic seconds.
    """

    def __init__(
        self,
        spool: Journal,
        log: Log,
        unspooled: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._spool = spool
        self._log = log
        self._unspooled = unspooled
        self._changed = threading.Condition()
        self._entries: dict[ObjectKey, _Entry] = {}
        self._heap: list[tuple[float, int, ObjectKey]] = []
        self._pushed = 0
        self._open = True
        # What the spool holds: the serial and the time of the first ring.
        self._owed: dict[ObjectKey, tuple[int, str]] = {}
        self._serial = 0
        self._pace = ReadDelay()

    def restore(self) -> int:
        """Take up what an earlier process owed; say how much that is."""
        with self._changed:
            left = self._spool.owed()
            for debt in left:
                self._serial = max(self._serial, debt.serial)
                self._owed[debt.key] = (debt.serial, debt.rang)
                self._schedule(debt)
        return len(left)

    def ring(self, hint: Hint, rang: str) -> None:
        """Note a hint, on disk first; its object's clock starts anew."""
        with self._changed:
            self._serial += 1
            debt = PendingObject.of(hint, rang, self._serial)
            entry = self._entries.get(hint.key)
            if entry is not None and entry.taken:
                debt = entry.behind.merge(debt) if entry.behind else debt
                entry.behind = debt
            elif entry is not None:
                debt = entry.turn.debt.merge(debt)
            self._write(debt)
            if entry is None:
                self._schedule(debt)
            elif not entry.taken:
                self._schedule(debt, latest=entry.latest)

    def take(self) -> QueueItem | None:
        """Wait for the next object that is due; None once the desk is closed."""
        with self._changed:
            while self._open:
                wait = self._until_due()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                entry = self._entries[heapq.heappop(self._heap)[2]]
                entry.taken = True
                if self._heap:
                    # The next may be due before any other reader would wake by itself.
                    self._changed.notify()
                return entry.turn
        return None

    def later(self, turn: QueueItem, delay: float) -> None:
        """Give an object back to be looked at after `delay`, or anew if it rang meanwhile."""
        with self._changed:
            entry = self._entries[turn.debt.key]
            if entry.behind is not None:
                self._schedule(turn.debt.merge(entry.behind))
            else:
                self._schedule(turn.debt, turn=turn, delay=delay)

    def absorb(self, turn: QueueItem, seen: Known) -> None:
        """Have what was just seen stand for what rang meanwhile, too, if it already shows it.

        How often it had been looked at in vain says how long the API server takes.
        """
        with self._changed:
            if turn.debt.uid:
                self._pace.found(turn.looks)
            entry = self._entries[turn.debt.key]
            if entry.behind is not None and entry.behind.is_settled_by(seen):
                own = turn.debt.own and entry.behind.own
                turn.debt = replace(turn.debt, serial=entry.behind.serial, own=own)
                entry.behind = None

    def finish(self, turn: QueueItem) -> None:
        """Count an object as looked at; if it rang meanwhile, it will be again."""
        with self._changed:
            entry = self._entries.pop(turn.debt.key)
            if entry.behind is not None:
                self._schedule(entry.behind)

    def forget(self, done: Iterable[tuple[ObjectKey, int]]) -> None:
        """Drop from the disk what is no longer owed, up to the given serials."""
        pairs = list(done)
        with self._changed:
            try:
                self._spool.forget(pairs)
            except BellhopError as error:
                # Read and sent once more by the next process, which does no harm.
                self._log.warning("Cannot clear the spool", error=str(error))
            for key, serial in pairs:
                if self._owed.get(key, (serial + 1, ""))[0] <= serial:
                    del self._owed[key]
            if not self._owed:
                self._changed.notify_all()

    def owed(self) -> tuple[int, str]:
        """Return how many objects are owed, and since when the first of them is (ISO time)."""
        with self._changed:
            return len(self._owed), min((rang for _, rang in self._owed.values()), default="")

    @property
    def serial(self) -> int:
        """Return the serial of the last hint."""
        with self._changed:
            return self._serial

    def wait_until_clear(self, seconds: float) -> bool:
        """Wait until nothing is owed; say whether that came to be."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._owed, seconds)

    def close(self) -> None:
        """Send the readers home; what is owed stays on disk."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _write(self, debt: PendingObject) -> None:
        rang = min(debt.rang, self._owed.get(debt.key, (0, debt.rang))[1])
        self._owed[debt.key] = (debt.serial, rang)
        try:
            self._spool.put(debt)
        except BellhopError as error:
            # A full disk must not lose what memory can still do.
            self._log.warning("Cannot spool a hint; only a kill would lose it", error=str(error))
            self._unspooled()

    def _schedule(
        self,
        debt: PendingObject,
        *,
        turn: QueueItem | None = None,
        delay: float | None = None,
        latest: float | None = None,
    ) -> None:
        now = self._clock()
        if delay is None:
            delay = self._pace.seconds if debt.uid else FIRST_LOOK_BLIND
        if latest is None:
            latest = now + max(delay, BURST)
        due = min(now + delay, latest)
        self._entries[debt.key] = _Entry(turn or QueueItem(debt), due, latest)
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, debt.key))
        if self._heap[0][1] == self._pushed:
            self._changed.notify()

    def _until_due(self) -> float | None:
        """Return the seconds until the first entry is due; None if there is none."""
        while self._heap:
            due, _, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and not entry.taken and entry.due == due:
                return due - self._clock()
            # Its entry was looked at, or got a new due time, since this was pushed.
            heapq.heappop(self._heap)
        return None
