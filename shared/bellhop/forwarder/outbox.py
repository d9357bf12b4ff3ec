"""Items that were read and are not sent yet: the newest of each object, in bounded memory.

While ingest accepts nothing, readers wait here instead of filling the memory: unread objects stay
in the journal, by their names.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from bellhop.core.gvk import ObjectKey
from bellhop.forwarder.backoff import Attempts

BATCH_ITEMS = 100
BATCH_BYTES = 1024 * 1024
"""The most of one request; a larger object is a request by itself."""

MOST_ITEMS = 500
MOST_BYTES = 8 * 1024 * 1024
"""From here on nothing more is read."""


@dataclass(slots=True)
class Item:
    """One element of a batch, and how far it covers what is owed about its object.

    `body` is JSON, a mapping; the sender adds the time of its hint, and whether it is `own`.
    `alone` is an item of a request that ingest could not read.
    """

    key: ObjectKey
    serial: int
    reported_at: str
    body: bytes
    attempts: Attempts = field(default_factory=Attempts)
    own: bool = False
    alone: bool = False


class Outbox:
    """Items for one sender, from many readers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[ObjectKey, Item] = OrderedDict()
        self._away: dict[ObjectKey, Item] = {}
        self._bytes = 0
        self._open = True
        self._awake = False

    def put(self, item: Item) -> None:
        """Add an item in the place of an older one of its object."""
        with self._changed:
            self._add(item)
            self._changed.notify_all()

    def cover(self, key: ObjectKey, serial: int) -> bool:
        """Have an unsent item stand for a later hint that changed nothing; say if there is one."""
        with self._changed:
            item = self._waiting.get(key) or self._away.get(key)
            if item is None:
                return False
            item.serial = max(item.serial, serial)
            return True

    @property
    def is_open(self) -> bool:
        """Say whether items are still taken out."""
        return self._open

    def wake(self) -> None:
        """Have `take` return, with nothing if there is nothing."""
        with self._changed:
            self._awake = True
            self._changed.notify_all()

    def take(self, seconds: float | None = None) -> list[Item]:
        """Wait for items that are due and take the next batch.

        The batch is empty where the outbox was closed, nothing came in time, or somebody said
        `wake`. A batch must be given back: to `settle`, or to `put_back`.
        """
        ends = float("inf") if seconds is None else time.monotonic() + seconds
        with self._changed:
            while self._open and not self._awake:
                now = time.monotonic()
                wait = min(ends, self._due()) - now
                if wait <= 0:
                    break
                self._changed.wait(None if wait == float("inf") else wait)
            self._awake = False
            now = time.monotonic()
            due = (item for item in self._waiting.values() if item.attempts.due <= now)
            batch = _limit(due) if self._open else []
            for item in batch:
                self._remove(item.key)
            self._away = {item.key: item for item in batch}
            self._changed.notify_all()
            return batch

    def settle(self, items: Iterable[Item]) -> list[tuple[ObjectKey, int]]:
        """Count items as done; return what they cover."""
        with self._changed:
            done = []
            for item in items:
                self._away.pop(item.key, None)
                done.append((item.key, item.serial))
            return done

    def put_back(self, items: Iterable[Item]) -> None:
        """Take items again that could not be sent, unless there is newer; they are the first."""
        with self._changed:
            for item in reversed(list(items)):
                self._away.pop(item.key, None)
                newer = self._waiting.get(item.key)
                if newer is not None:
                    newer.reported_at = min(newer.reported_at, item.reported_at)
                    newer.serial = max(newer.serial, item.serial)
                    newer.own = newer.own and item.own
                    newer.attempts = item.attempts
                else:
                    self._add(item)
                    self._waiting.move_to_end(item.key, last=False)

    def retrying(self) -> int:
        """Return how many items wait for another attempt."""
        with self._changed:
            return sum(item.attempts.failed > 0 for item in self._waiting.values())

    def is_crowded(self) -> bool:
        """Return whether such items take more than half of the capacity."""
        with self._changed:
            sizes = [len(item.body) for item in self._waiting.values() if item.attempts.failed]
            return len(sizes) > MOST_ITEMS / 2 or sum(sizes) > MOST_BYTES / 2

    def has_capacity(self) -> bool:
        with self._changed:
            return len(self._waiting) < MOST_ITEMS and self._bytes < MOST_BYTES

    def wait_for_capacity(self) -> bool:
        """Wait until more may be read; say False once the outbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.has_capacity() or not self._open)
            return self._open

    def close(self) -> None:
        """Send everybody home."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _due(self) -> float:
        """Return when the first item may be sent."""
        return min((item.attempts.due for item in self._waiting.values()), default=float("inf"))

    def _add(self, item: Item) -> None:
        older = self._waiting.get(item.key)
        if older is not None:
            item.reported_at = min(older.reported_at, item.reported_at)
            item.attempts = older.attempts
            item.own = item.own and older.own
            self._remove(item.key)
        self._waiting[item.key] = item
        self._bytes += len(item.body)

    def _remove(self, key: ObjectKey) -> None:
        self._bytes -= len(self._waiting.pop(key).body)


def _limit(items: Iterable[Item]) -> list[Item]:
    """Take as many items, from the first, as one request holds."""
    batch: list[Item] = []
    size = 0
    for item in items:
        size += len(item.body)
        full = size > BATCH_BYTES or len(batch) == BATCH_ITEMS
        if batch and (full or item.alone or batch[0].alone):
            break
        batch.append(item)
    return batch
