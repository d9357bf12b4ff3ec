"""The delaying queue: one entry for each object to read, by due time, also kept on disk.

    add ──► waiting ──take──► with a reader ──finish──► (outbox) ──forget──► removed
               ▲                    │
               └──────requeue───────┘      a hint meanwhile waits in `behind`

Nothing polls: a reader sleeps until the earliest entry is due or an earlier one comes.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.errors import BellhopError
from bellhop.forwarder.pending import Journal, Known, PendingObject
from bellhop.ingest.admission import Hint
from bellhop.logs import Log

BEGIN = 0.003
"""Seconds, before anything is known of an API server."""

SHORTEST, LONGEST = 0.001, 0.02

_SHORTER, _LONGER = 0.98, 1.2
# A write that is found later has waited for another webhook, not for being stored.
_AT_MOST_LOOKS = 3


class ReadDelay:
    """The wait for one API server's writes.

    A read that comes too early is repeated, and the next one is late. The right delay depends on
    the disks of etcd, which take from one to ten milliseconds. So each read that finds the write
    stored makes the delay a little shorter, and each that came too early makes it longer by so much
    more that about one of ten comes too early.
    """

    def __init__(self) -> None:
        self.seconds = BEGIN

    def found(self, looks: int) -> None:
        """Note that a write was found stored after so many reads that came too early."""
        if looks <= _AT_MOST_LOOKS:
            seconds = self.seconds * (_LONGER if looks else _SHORTER)
            self.seconds = min(LONGEST, max(SHORTEST, seconds))


FIRST_LOOK_BLIND = 0.05
"""Seconds until the first read if a hint has no state before the write: one read must do."""

BURST = 0.05
"""For how long hints on one object may delay its next read."""


@dataclass(slots=True)
class QueueItem:
    """An object with a reader, with the numbers of its reads and of those that failed.

    `refused_at` is the monotonic time of the first of those failures.
    """

    pending: PendingObject
    looks: int = 0
    failures: int = 0
    refused_at: float = 0.0


class _Owed(NamedTuple):
    serial: int = 0
    reported_at: str = ""
    named: bool = True


@dataclass(slots=True)
class _Entry:
    item: QueueItem
    due: float
    latest: float
    taken: bool = False
    behind: PendingObject | None = None


class DelayingQueue:
    """Pending objects; shared between threads.

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
        # The content of the journal.
        self._owed: dict[ObjectKey, _Owed] = {}
        self._serial = 0
        self._read_delay = ReadDelay()

    def restore(self) -> int:
        """Add the objects that an earlier process left; return how many."""
        with self._changed:
            left = self._spool.owed()
            for pending in left:
                self._serial = max(self._serial, pending.serial)
                self._owed[pending.key] = _Owed(pending.serial, pending.reported_at, pending.named)
                self._schedule(pending)
        return len(left)

    def add(self, hint: Hint, reported_at: str) -> None:
        """Add a hint, on disk first; the delay of its object starts again.

        A name must not replace an object that was read and is not sent yet: it is read again.
        """
        with self._changed:
            self._serial += 1
            if hint.named and not self._owed.get(hint.key, _Owed()).named:
                hint = replace(hint, named=False)
            pending = PendingObject.of(hint, reported_at, self._serial)
            entry = self._entries.get(hint.key)
            if entry is not None and entry.taken:
                pending = entry.behind.merge(pending) if entry.behind else pending
                entry.behind = pending
            elif entry is not None:
                pending = entry.item.pending.merge(pending)
            self._write(pending)
            if entry is None:
                self._schedule(pending)
            elif not entry.taken:
                self._schedule(pending, latest=entry.latest)

    def take(self) -> QueueItem | None:
        """Wait for the next object that is due; None once the queue is closed."""
        with self._changed:
            while self._open:
                wait = self._seconds_until_due()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                entry = self._entries[heapq.heappop(self._heap)[2]]
                entry.taken = True
                if self._heap:
                    # The next may be due before any other reader would wake by itself.
                    self._changed.notify()
                return entry.item
        return None

    def requeue(self, item: QueueItem, delay: float) -> None:
        """Queue an object again after `delay`, or from the start if a hint came meanwhile."""
        with self._changed:
            entry = self._entries[item.pending.key]
            if entry.behind is not None:
                self._schedule(item.pending.merge(entry.behind))
            else:
                self._schedule(item.pending, item=item, delay=delay)

    def absorb(self, item: QueueItem, seen: Known) -> None:
        """Drop a hint that came meanwhile, if the state just read already shows its write.

        The number of reads that came too early corrects the delay.
        """
        with self._changed:
            if item.pending.uid:
                self._read_delay.found(item.looks)
            entry = self._entries[item.pending.key]
            if entry.behind is not None and entry.behind.is_settled_by(seen):
                own = item.pending.own and entry.behind.own
                item.pending = replace(item.pending, serial=entry.behind.serial, own=own)
                entry.behind = None

    def finish(self, item: QueueItem) -> None:
        """Remove an object; if a hint came meanwhile, queue it again."""
        with self._changed:
            entry = self._entries.pop(item.pending.key)
            if entry.behind is not None:
                self._schedule(entry.behind)

    def forget(self, done: Iterable[tuple[ObjectKey, int]]) -> None:
        """Drop objects that are no longer pending from the disk, up to the given serials."""
        pairs = list(done)
        with self._changed:
            try:
                self._spool.forget(pairs)
            except BellhopError as error:
                # The next process reads and sends them once more, which is harmless.
                self._log.warning("Cannot clear the spool", error=str(error))
            for key, serial in pairs:
                if self._owed.get(key, _Owed(serial + 1)).serial <= serial:
                    del self._owed[key]
            if not self._owed:
                self._changed.notify_all()

    def owed(self) -> tuple[int, str]:
        """Return how many objects are pending, and since when the first of them is (ISO time)."""
        with self._changed:
            return len(self._owed), min(
                (each.reported_at for each in self._owed.values()), default=""
            )

    @property
    def serial(self) -> int:
        """Return the serial of the last hint."""
        with self._changed:
            return self._serial

    def wait_until_clear(self, seconds: float) -> bool:
        """Wait until nothing is pending; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._owed, seconds)

    def close(self) -> None:
        """Have `take` return None; pending objects stay on disk."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _write(self, pending: PendingObject) -> None:
        before = self._owed.get(pending.key)
        reported_at = min(
            pending.reported_at, before.reported_at if before else pending.reported_at
        )
        self._owed[pending.key] = _Owed(pending.serial, reported_at, pending.named)
        try:
            self._spool.put(pending)
        except BellhopError as error:
            # On a full disk the object is still in memory.
            self._log.warning("Cannot spool a hint; only a kill would lose it", error=str(error))
            self._unspooled()

    def _schedule(
        self,
        pending: PendingObject,
        *,
        item: QueueItem | None = None,
        delay: float | None = None,
        latest: float | None = None,
    ) -> None:
        now = self._clock()
        if delay is None:
            delay = self._read_delay.seconds if pending.uid else FIRST_LOOK_BLIND
        if latest is None:
            latest = now + max(delay, BURST)
        due = min(now + delay, latest)
        self._entries[pending.key] = _Entry(item or QueueItem(pending), due, latest)
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, pending.key))
        if self._heap[0][1] == self._pushed:
            self._changed.notify()

    def _seconds_until_due(self) -> float | None:
        """Return the seconds until the first entry is due; None if there is none."""
        while self._heap:
            due, _, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and not entry.taken and entry.due == due:
                return due - self._clock()
            # Its entry was read, or got a new due time, since this was pushed.
            heapq.heappop(self._heap)
        return None
