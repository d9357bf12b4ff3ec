"""Schedule: publishes what is due, and keeps nothing in memory.

Later work is a timer in the store: the retry of a deployment, a cluster's next resync or renewal,
the garbage collection after one that left. This stage looks for timers that are due, each minute in
a cloud and several times a second on one machine.

    index ─► retries and all else, oldest first ─► resyncs, oldest first ─► those set too far ahead
    a batch:  read its timers ─► publish their messages ─► move or end each, delete its entry

Helpers work on several batches at once. A tick begins no batch after `SPELL`: the next one goes on
with the oldest. A timer is moved once its message is published, so that a tick that dies, or two at
once, publish a message twice at worst. A timer that fails keeps no other from firing.

Timers that a clock set which was ahead are pulled in once that is noticed: by a tick, by the timer
of the maintenance, which fires within the hour, or when that fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, takewhile
from typing import NamedTuple

from bellhop.core.attempts import Failures
from bellhop.errors import InvalidError, TemporaryError
from bellhop.logs import Log
from bellhop.ports.store import Item
from bellhop.settings import Settings
from bellhop.state import messages
from bellhop.state.delays import PROBE_PAUSE, RENEWAL_PAUSE, spread, sweep_timer
from bellhop.state.envelope import Envelope
from bellhop.state.messages import CollectGarbage, Probe, Publisher, Renew, Resync
from bellhop.state.records import Records
from bellhop.state.timers import SHARDS, Due
from bellhop.state.worker_pool import SEQUENTIAL, WorkerPool

SPELL = timedelta(seconds=24)
"""After so long a tick begins no batch. A function has a minute, and the next tick comes then."""

_GRACE = timedelta(seconds=10)
"""For so long after that it moves timers whose messages are out: else they fire again."""

_PULLING = timedelta(seconds=3)
"""For so long it sets timers again that a clock set which was ahead."""

_BATCH = 10
"""Timers whose messages are published together: SQS takes ten in a request."""

_MOST = 2_000
"""Entries of a shard that one tick reads."""

HOUSE = "keep"
"""The timer of the house's own work: collecting, and setting what timers are missing."""

_KEEPING = timedelta(hours=1)


class Ticked(NamedTuple):
    """How many messages a tick published, and the time of the earliest timer that was due."""

    published: int
    earliest: datetime | None


class _Ready(NamedTuple):
    """A timer that counts, and the message that it is for."""

    due: Due
    name: str
    at: datetime
    message: Envelope


class Schedule:
    """Fires timers whose time has come."""

    def __init__(
        self,
        records: Records,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        hands: WorkerPool = SEQUENTIAL,
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._hands = hands

    def tick(self, *, until: timedelta | None = None, ahead: bool = False) -> Ticked:
        """Publish what is due, `until` a time of the steady clock; `SPELL` from now if not given.

        `ahead` says that a clock is known to have been ahead.

        Raises:
            Exception: a timer, the store or a queue failed; all others that were due have fired.
        """
        now, failures = self._records.clock.now(), Failures()
        begun = self._records.clock.steady()
        until = until or begun + SPELL
        with failures.isolated(HOUSE):
            ahead = self._begin(now) or ahead
        resyncs: list[Item] = []
        others: list[Item] = []
        for entry in self._entries(now, failures):
            is_resync = entry.value["name"].startswith(sweep_timer(""))
            (resyncs if is_resync else others).append(entry)
        # Retries that are more than a tick can publish keep no cluster from its resync.
        middle = begun + (until - begun) / 2 if resyncs else until
        fired = [
            *self._fire(others, now, failures, middle),
            *self._fire(resyncs, now, failures, until),
        ]
        if ahead or any(isinstance(each.message, CollectGarbage) for each in fired):
            self.pull_in()
        self._end(failures)
        return Ticked(len(fired), min((each.at for each in fired), default=None))

    def pull_in(self) -> None:
        """Set timers again that a clock set which was ahead; the next tick goes on with the rest.

        Raises:
            Exception: a timer or the store failed; all others were set.
        """
        clock, failures = self._records.clock, Failures()
        now = clock.now()
        ahead = list(chain.from_iterable(self._records.timers.ahead(each, now) for each in SHARDS))
        until = clock.steady() + _PULLING

        def pull_in(entry: Item) -> None:
            with failures.isolated(entry.value["name"]):
                self._records.timers.pull_in(entry, now)

        done, _ = self._hands.each(pull_in, ahead, self._before(until))
        if done:
            message = "Pulled in timers that a clock set which was ahead"
            self._log.warning(message, timers=len(done))
        if len(done) < len(ahead):
            self._records.timers.set(HOUSE, now, CollectGarbage().message().body)
        self._end(failures)

    def _begin(self, now: datetime) -> bool:
        """See that the house's timer is set; return whether a clock set it that was ahead."""
        house = self._records.timers.get(HOUSE)
        if house is None:
            # The first time, or after the state was lost: begin with what must be set.
            self._records.timers.set(HOUSE, now, CollectGarbage().message().body)
        return house is not None and house.value.is_ahead(now)

    def _entries(self, now: datetime, failures: Failures) -> Sequence[Item]:
        """Read the entries of the index that are due, oldest first, those of a shard apart."""

        def read(shard: str) -> list[Item]:
            with failures.isolated(f"due/{shard}"):
                return list(self._records.timers.entries(shard, now, limit=_MOST))
            return []

        found, _ = self._hands.each(read, SHARDS, lambda: True)
        entries = chain.from_iterable(found)
        return sorted(entries, key=lambda entry: (entry.value["at"], entry.value["name"]))

    def _fire(
        self, entries: Sequence[Item], now: datetime, failures: Failures, until: timedelta
    ) -> Iterator[_Ready]:
        """Fire timers, a batch at a time; yield those whose messages were published."""
        in_time, in_grace = self._before(until), self._before(until + _GRACE)

        def fire(first: int) -> Sequence[_Ready]:
            batch = takewhile(lambda _: in_time(), entries[first : first + _BATCH])
            ready = [found for each in batch if (found := self._ready(each, failures))]
            published = self._publish(ready, failures, in_time)
            for each in takewhile(lambda _: in_grace(), published):
                with failures.isolated(each.name):
                    self._set_next(each, now)
            return published

        done, _ = self._hands.each(fire, range(0, len(entries), _BATCH), in_time)
        return chain.from_iterable(done)

    def _ready(self, entry: Item, failures: Failures) -> _Ready | None:
        """Read the timer of an entry; one that no longer counts, or is unreadable, is deleted."""
        name = entry.value["name"]
        with failures.isolated(name):
            due = self._records.timers.read(entry)
            if not due.counts or due.timer is None:
                self._records.timers.delete_entry(due)
                return None
            try:
                return _Ready(due, name, due.timer.value.at, messages.read(due.timer.value.body))
            except InvalidError as error:
                self._log.error("Cannot read a timer", error, name=name)
                self._records.timers.end(due)
                self._records.timers.delete_entry(due)
            except TemporaryError as error:
                # A newer version set it, and will publish it.
                self._log.warning("Left a timer", name=name, error=str(error))
        return None

    def _publish(
        self, batch: Sequence[_Ready], failures: Failures, in_time: Callable[[], bool]
    ) -> Sequence[_Ready]:
        """Publish the messages of a batch; return the timers whose messages are out."""
        try:
            self._publisher.publish([each.message for each in batch])
        except Exception:  # noqa: BLE001 - one message may be why: each is tried by itself
            several = takewhile(lambda _: in_time(), batch)
            return [each for each in several if self._is_published(each, failures)]
        return batch

    def _is_published(self, ready: _Ready, failures: Failures) -> bool:
        with failures.isolated(ready.name):
            self._publisher.publish([ready.message])
            return True
        return False

    def _set_next(self, fired: _Ready, now: datetime) -> None:
        """Move a timer that has fired to its next time, or end it, and delete its entry."""
        again = self._next(fired.name, fired.message, now)
        if again is None:
            self._records.timers.end(fired.due)
        else:
            self._records.timers.move(fired.due, again)
        self._records.timers.delete_entry(fired.due)

    def _next(self, name: str, message: Envelope, now: datetime) -> datetime | None:
        """Say when a timer fires again; None for those that fire once."""
        match message:
            case Resync() if name == sweep_timer(message.cluster):
                if self._records.clusters.get(message.cluster) is None:
                    return None
                return now + spread(name, self._settings.sweep_interval)
            case Renew():
                if self._records.clusters.get(message.cluster) is None:
                    return None
                # Its handler sets the time that the record has; if it fails, this one counts.
                return now + RENEWAL_PAUSE
            case Probe():
                # As above; a worker that the cluster answers deletes it.
                return now + PROBE_PAUSE
            case CollectGarbage():
                return now + _KEEPING
        return None

    def _end(self, failures: Failures) -> None:
        """Fail the tick if a timer did; the next one tries it again."""
        if names := failures.names:
            self._log.warning("Left timers that failed", timers=len(names), name=names[0])
        failures.end()

    def _before(self, until: timedelta) -> Callable[[], bool]:
        """Return what says whether there is time left."""
        return lambda: self._records.clock.steady() < until
