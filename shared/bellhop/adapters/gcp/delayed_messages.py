"""Delayed messages of an inbox on Pub/Sub: those that pause, and the lines of busy shares.

Pub/Sub delays no message for a chosen time. So one that must wait is put into the store,
acknowledged, and published again as a message of its own:

    at/TIME/ID              a pause; a tick publishes it when it is due
    line/SHARE/TIME/ID      one behind others of its share; the worker that ends one calls others

All are in one partition, so that an inbox without delayed messages costs one read. A message is
published and then deleted: after a death in between it is published again. One in a line is taken
by a conditional write before: many workers call at once, and each must call another.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.queue import Delivery, Message
from bellhop.ports.store import Item, Store

_PAUSES = "at/"
_LINES = "line/"
_SPREAD = 16
"""From so many at the head of a line the next ones are drawn."""

_FEW = 4
"""So few wake no thread."""

_THREADS = 8

CALLING = timedelta(minutes=1)
"""How long who stands in line is somebody's who has called him, and then anybody's."""

_NEVER = "2000-01-01T00:00:00+00:00"
_END = "0"
"""Comes after the `/` behind a share's digest, and so after all of its line."""


T = TypeVar("T")


class DelayedMessage(Struct, frozen=True):
    """A message that was put into the store, with the attempts that it has used up."""

    item: Item
    message: Message
    attempts: int


class DelayedMessages:
    """The delayed messages of one inbox."""

    def __init__(self, store: Store, name: str, clock: Clock) -> None:
        self._store = store
        self._partition = f"rest/{name}"
        self._clock = clock

    def until(self, delivery: Delivery, at: datetime) -> None:
        """Have a delivery rest until then; its attempt is used up."""
        self._put(f"{_PAUSES}{_moment(at)}/{delivery.id}", delivery, delivery.attempt)

    def behind(self, delivery: Delivery) -> None:
        """Have a delivery on which nobody has worked rest behind others of its share."""
        line = _line(delivery.message.share)
        now = _moment(self._clock.now())
        self._put(f"{line}/{now}/{delivery.id}", delivery, delivery.attempt - 1)

    def due(self, limit: int) -> Iterator[DelayedMessage]:
        """Yield what has rested long enough, in the order of time."""
        now = _moment(self._clock.now())
        for item in self._store.query(self._partition, prefix=_PAUSES, limit=limit):
            if item.sort.split("/")[1] > now:
                return
            yield _read_delayed(item)

    def next_of(self, share: str, most: int) -> Sequence[DelayedMessage]:
        """Take some from the head of a share's line, which nobody else takes meanwhile."""
        line = f"{_line(share)}/"
        found = list(self._store.query(self._partition, prefix=line, limit=_SPREAD))
        # Others look at the same ones: few begin with the same.
        random.shuffle(found)
        taken = filter(None, map(self._take, found))
        return list(islice(taken, most))

    def stalled(self, most: int) -> Iterator[DelayedMessage]:
        """Take the first messages of each line whose head has waited for a minute.

        The worker that should have called them may have died.
        """
        latest, after = _moment(self._clock.now() - CALLING), _LINES
        while heads := self._line_after(after, most):
            line = heads[0].sort.rpartition("/")[0].rpartition("/")[0]
            for item in heads:
                if item.sort.startswith(f"{line}/") and item.sort < f"{line}/{latest}":
                    yield from filter(None, [self._take(item)])
            after = line + _END

    def any(self) -> bool:
        return any(True for _ in self._store.query(self._partition, limit=1))

    def delete(self, published: Iterable[DelayedMessage]) -> None:
        """Delete published messages, unless another worker has."""
        at_once(self._delete, list(published))

    def _delete(self, each: DelayedMessage) -> None:
        with suppress(StaleError):
            self._store.delete(self._partition, each.item.sort, expect=each.item.token)

    def _take(self, item: Item) -> DelayedMessage | None:
        """Take a message in line, unless another worker has; it has a minute to publish it."""
        now = self._clock.now()
        if now < datetime.fromisoformat(item.value.get("called", _NEVER)) + CALLING:
            return None
        called = {**item.value, "called": _moment(now)}
        with suppress(StaleError):
            return _read_delayed(self._store.put(replace(item, value=called), expect=item.token))
        return None

    def _line_after(self, after: str, limit: int) -> list[Item]:
        return list(self._store.query(self._partition, prefix=_LINES, after=after, limit=limit))

    def _put(self, sort: str, delivery: Delivery, attempts: int) -> None:
        value = written(delivery.message) | {"attempts": attempts}
        self._store.put(Item(self._partition, sort, value))


def at_once(do: Callable[[T], None], several: Sequence[T]) -> None:
    """Do something to each of several that wait for Google; few are done one after the other.

    Raises:
        BellhopError: one failed; the others were done, or are left as they were.
    """
    if len(several) <= _FEW:
        for each in several:
            do(each)
        return
    threads = ThreadPoolExecutor(_THREADS, "resting")
    try:
        list(threads.map(do, several))
    finally:
        threads.shutdown(cancel_futures=True)


def written(message: Message) -> dict[str, Any]:
    return {"body": dict(message.body), "group": message.group, "share": message.share}


def read(value: Mapping[str, Any]) -> Message:
    return Message(value["body"], value["group"], value["share"])


def _read_delayed(item: Item) -> DelayedMessage:
    return DelayedMessage(item, read(item.value), item.value["attempts"])


def _line(share: str) -> str:
    return _LINES + hashlib.sha256(share.encode()).hexdigest()[:16]


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
