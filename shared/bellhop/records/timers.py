"""What is to happen later: a timer by its name, and an index by time for the schedule to read.

    set:    index "at, name" ─► timer "name" says at        (setting it again supersedes it)
    fire:   publish ─► timer is moved, or deleted, on condition ─► index entry is deleted

The timer is the truth: an index entry whose time is not its timer's is of one that was set anew
or cancelled, and is passed over. A death between two of these steps leaves an entry that fires
again, or one that means nothing; it never loses a timer that was set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from bellhop.errors import StaleError
from bellhop.frozen import frozen
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.records.table import Kept, Table

SHARDS = "0123456789abcdef"
"""Partitions of timers and of their index: times grow, and no partition takes all the writes."""


@frozen
class Timer:
    """A message's body that is to be published at a time."""

    name: str
    at: datetime
    body: Mapping[str, Any]


@frozen
class Due:
    """An entry of the index whose time has come, and the timer as it is by now."""

    item: Item
    timer: Kept[Timer] | None

    @property
    def counts(self) -> bool:
        """Say whether the timer is still set for this time."""
        return self.timer is not None and _moment(self.timer.value.at) == self.item.value["at"]


class Timers:
    """Timers by name; each name has one time at most."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Timer)

    def get(self, name: str) -> Kept[Timer] | None:
        """Read a timer."""
        return self._table.get(_place(name), name)

    def set(
        self, name: str, at: datetime, body: Mapping[str, Any], *, expect: str | None = ANY
    ) -> None:
        """Have a message published at a time; what the name was set for before is forgotten.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self._enter(name, at)
        self._table.put(_place(name), name, Timer(name, at, body), expect=expect)

    def set_by(self, name: str, at: datetime, body: Mapping[str, Any], *, now: datetime) -> None:
        """Have a message published at a time, or earlier, as somebody else has set it meanwhile.

        For what many ask for by one name, each knowing what is due by itself. What is due already
        is being fired, and may have been looked at before this was asked.
        """
        while True:
            kept = self.get(name)
            if kept and now < kept.value.at <= at:
                return
            with suppress(StaleError):
                self.set(name, at, body, expect=kept.token if kept else ABSENT)
                return

    def cancel(self, name: str, *, expect: str | None = ANY) -> None:
        """Forget a timer, set or not.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self._store.delete(_place(name), name, expect=expect)

    def due(self, now: datetime, *, limit: int) -> Iterator[Due]:
        """Yield what is due, for each shard up to `limit` and in the order of time."""
        latest = _moment(now)
        for shard in SHARDS:
            for item in self._entries(f"due/{shard}", limit):
                if item.value["at"] > latest:
                    break
                yield Due(item, self.get(item.value["name"]))

    def _entries(self, shard: str, limit: int) -> Iterator[Item]:
        """Yield a shard's entries in the order of time; few are read beyond those that are wanted.

        A cloud may take money for each of them, and all of a fleet's next sweeps are among them.
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
        """Set a timer that has fired for its next time, unless somebody was quicker."""
        assert due.timer is not None
        timer = due.timer.value
        self._enter(timer.name, at)
        with suppress(StaleError):
            moved = Timer(timer.name, at, timer.body)
            self._table.put(_place(timer.name), timer.name, moved, expect=due.timer.token)

    def end(self, due: Due) -> None:
        """Forget a timer that has fired, unless it was set anew meanwhile."""
        assert due.timer is not None
        name = due.timer.value.name
        with suppress(StaleError):
            self._store.delete(_place(name), name, expect=due.timer.token)

    def strike(self, due: Due) -> None:
        """Take an entry out of the index."""
        self._store.delete(due.item.partition, due.item.sort)

    def _enter(self, name: str, at: datetime) -> None:
        moment = _moment(at)
        item = Item(
            f"due/{_digest(name)[0]}", f"{moment}/{_digest(name)}", {"name": name, "at": moment}
        )
        self._store.put(item)


def _place(name: str) -> str:
    return f"timer/{_digest(name)[0]}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
