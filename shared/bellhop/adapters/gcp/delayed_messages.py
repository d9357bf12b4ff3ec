"""What of an inbox on Pub/Sub is to be published later: pauses, and the lines of busy shares.

Pub/Sub delays no message for so long as somebody likes. So one that has to wait is put into the
store, acknowledged, and published again as a message of its own:

    at/TIME/ID              a pause; whoever ticks publishes what is due
    line/SHARE/TIME/ID      one behind others of its share; whoever ends one of these calls others

All are in one partition, so that who looks into an inbox where nothing rests reads once.
Published and then struck out: who dies in between has it published again. One in a line is taken
by a conditional write before: many call at once, and each is to call another.
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
    """What rests of one inbox."""

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
            yield _rested(item)

    def next_of(self, share: str, most: int) -> Sequence[DelayedMessage]:
        """Take some from the head of a share's line, which nobody else takes meanwhile."""
        line = f"{_line(share)}/"
        found = list(self._store.query(self._partition, prefix=line, limit=_SPREAD))
        # Others look at the same ones: few begin with the same.
        random.shuffle(found)
        taken = filter(None, map(self._taken, found))
        return list(islice(taken, most))

    def stalled(self, most: int) -> Iterator[DelayedMessage]:
        """Take the first ones of each line whose head stands there for a minute.

        Maybe nobody calls them: whoever was to may have died.
        """
        latest, after = _moment(self._clock.now() - CALLING), _LINES
        while heads := self._line_after(after, most):
            line = heads[0].sort.rpartition("/")[0].rpartition("/")[0]
            for item in heads:
                if item.sort.startswith(f"{line}/") and item.sort < f"{line}/{latest}":
                    yield from filter(None, [self._taken(item)])
            after = line + _END

    def any(self) -> bool:
        """Say if anything rests at all."""
        return any(True for _ in self._store.query(self._partition, limit=1))

    def strike(self, published: Iterable[DelayedMessage]) -> None:
        """Take out what was published, unless somebody has."""
        at_once(self._strike, list(published))

    def _strike(self, each: DelayedMessage) -> None:
        with suppress(StaleError):
            self._store.delete(self._partition, each.item.sort, expect=each.item.token)

    def _taken(self, item: Item) -> DelayedMessage | None:
        """Take one that stands in line, unless somebody has; he has a minute to publish it."""
        now = self._clock.now()
        if now < datetime.fromisoformat(item.value.get("called", _NEVER)) + CALLING:
            return None
        called = {**item.value, "called": _moment(now)}
        with suppress(StaleError):
            return _rested(self._store.put(replace(item, value=called), expect=item.token))
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
    """Write a message as a record has it."""
    return {"body": dict(message.body), "group": message.group, "share": message.share}


def read(value: Mapping[str, Any]) -> Message:
    """Read a message from a record."""
    return Message(value["body"], value["group"], value["share"])


def _rested(item: Item) -> DelayedMessage:
    return DelayedMessage(item, read(item.value), item.value["attempts"])


def _line(share: str) -> str:
    return _LINES + hashlib.sha256(share.encode()).hexdigest()[:16]


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
