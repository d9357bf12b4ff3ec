"""Timers by name, each with the message to publish, and an index by time for the schedule.

    set:    index "at, name" ─► timer "name" says at        (setting it again supersedes it)
    fire:   publish ─► timer is moved, or deleted, on condition ─► index entry is deleted

The timer is the truth: an index entry whose time is not its timer's is of one that was set again
or cancelled, and is ignored. A death between two of these steps leaves an entry that fires
again, or one that means nothing; it never loses a timer that was set.

A timer says when it was set, and so how long its pause is. One that was set in what is now the
future was set by a clock that was ahead: it is set again, for as long after now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from msgspec import Struct

from bellhop.errors import StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.table import Stored, Table

SHARDS = "0123456789abcdef"
"""Partitions of timers and of their index: times grow, and no partition takes all the writes."""

_MOMENT = timedelta(seconds=0.5)

SKEW = timedelta(minutes=1)
"""By how much the clocks of two processes may differ with nothing to be put right."""


class Timer(Struct, frozen=True):
    """A message's body that is to be published at a time."""

    name: str
    at: datetime
    body: Mapping[str, Any]
    set_at: datetime

    def is_ahead(self, now: datetime) -> bool:
        """Say whether a clock set it that was ahead of what is now believed."""
        return self.set_at > now + SKEW


class Due(Struct, frozen=True):
    """An entry of the index whose time has come, and the timer as it is by now."""

    item: Item
    timer: Stored[Timer] | None

    @property
    def counts(self) -> bool:
        """Say whether the timer is still set for this time."""
        return self.timer is not None and _moment(self.timer.value.at) == self.item.value["at"]


class Timers(Table[Timer, str]):
    """Timers by name; each name has one time at most."""

    kind = Timer
    partition, sort = "timer/{shard}", "{name}"

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def place(self, name: str) -> tuple[str, str]:
        """Return the place of a timer."""
        return f"timer/{_digest(name)[0]}", name

    def set(
        self, name: str, at: datetime, body: Mapping[str, Any], *, expect: str | None = ANY
    ) -> None:
        """Have a message published at a time; what the name was set for before is forgotten.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self._put(Timer(name, at, body, self._clock.now()), expect=expect)

    def set_by(self, name: str, at: datetime, body: Mapping[str, Any], *, now: datetime) -> None:
        """Have a message published at a time, or earlier, if another worker has set it so.

        For what many ask for by one name, each knowing what is due by itself. A timer that is due
        already is being fired, and its worker may have read the records before this call.
        """
        while True:
            kept = self.get(name)
            if kept and now < kept.value.at <= at:
                return
            with suppress(StaleError):
                self.set(name, at, body, expect=kept.token if kept else ABSENT)
                return

    def gather(self, name: str, body: Mapping[str, Any]) -> None:
        """Have a message published in a moment, once for all that ask for it until then."""
        now = self._clock.now()
        self.set_by(name, now + _MOMENT, body, now=now)

    def cancel(self, name: str, *, expect: str | None = ANY) -> None:
        """Forget a timer, set or not.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self.delete(name, expect=expect)

    def due(self, now: datetime, *, limit: int) -> Iterator[Due]:
        """Yield what is due, for each shard up to `limit` and in the order of time."""
        for shard in SHARDS:
            yield from map(self.read, self.entries(shard, now, limit=limit))

    def entries(self, shard: str, now: datetime, *, limit: int) -> Iterator[Item]:
        """Yield the entries of one shard that are due, in the order of time, up to `limit`."""
        latest = _moment(now)
        due = self._entries(f"due/{shard}", limit)
        return takewhile(lambda item: item.value["at"] <= latest, due)

    def read(self, item: Item) -> Due:
        """Read the timer of an entry."""
        return Due(item, self.get(item.value["name"]))

    def _entries(self, shard: str, limit: int) -> Iterator[Item]:
        """Yield a shard's entries in the order of time; few more than the caller takes are read.

        A cloud may take money for each of them, and all of a fleet's next resyncs are among them.
        """
        after, page = "", 1
        while limit > 0:
            asked = min(page, limit)
            found = list(self._store.query(shard, after=after, limit=asked))
            yield from found
            if len(found) < asked:
                return
            after, page, limit = found[-1].sort, page * 4, limit - asked

    def next_at(self) -> datetime | None:
        """Return when the index is to be looked at next; None where it is empty."""
        firsts = [self._store.query(f"due/{shard}", limit=1) for shard in SHARDS]
        times = [item.value["at"] for first in firsts for item in first]
        return datetime.fromisoformat(min(times)) if times else None

    def move(self, due: Due, at: datetime) -> None:
        """Set a timer that has fired for its next time, unless another worker was quicker."""
        assert due.timer is not None
        timer = due.timer.value
        with suppress(StaleError):
            moved = Timer(timer.name, at, timer.body, self._clock.now())
            self._put(moved, expect=due.timer.token)

    def ahead(self, shard: str, now: datetime) -> Iterator[Item]:
        """Yield the entries of one shard that a clock set which was ahead.

        It reads all of the shard: for when a clock went back, and once in a while.
        """
        latest = _moment(now + SKEW)
        return (item for item in self._store.query(f"due/{shard}") if item.value["set"] > latest)

    def pull_in(self, item: Item, now: datetime) -> None:
        """Set the timer of such an entry again, for as long after now as it was set for."""
        due = self.read(item)
        timer = due.timer.value if due.timer else None
        if due.counts and timer:
            self.move(due, now + max(timer.at - timer.set_at, timedelta(0)))
        self.delete_entry(due)

    def end(self, due: Due) -> None:
        """Forget a timer that has fired, unless it was set again meanwhile."""
        assert due.timer is not None
        name = due.timer.value.name
        with suppress(StaleError):
            self.delete(name, expect=due.timer.token)

    def delete_entry(self, due: Due) -> None:
        """Take an entry out of the index, unless its timer was set again for the same time."""
        with suppress(StaleError):
            self._store.delete(due.item.partition, due.item.sort, expect=due.item.token)

    def _put(self, timer: Timer, *, expect: str | None) -> None:
        mark, moment = _digest(timer.name), _moment(timer.at)
        entry = {"name": timer.name, "at": moment, "set": _moment(timer.set_at)}
        self._store.put(Item(f"due/{mark[0]}", f"{moment}/{mark}", entry))
        self.put(timer.name, timer, expect=expect)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
