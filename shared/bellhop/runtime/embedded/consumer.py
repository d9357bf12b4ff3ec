"""The consumer of the embedded mode: one thread takes messages, a bounded pool works on them.

    inboxes ──► consumer: which has messages, and a free worker? ──► pool: work, settle, take more

The queue is fair: fairness keys take turns, and each has only so many messages in flight. A limit
for each inbox keeps workers free for the others where one waits for clusters that do not answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct

from bellhop.adapters.local.database import Database
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.logs import Log
from bellhop.ports.queue import Delivery, GivenUp, Result
from bellhop.state.consumer import Inbox
from bellhop.state.event_log import Entry


class Scraping(NamedTuple):
    """The address of the metrics, and the labels that they may have: cluster, profile."""

    host: str
    port: int
    labels: Collection[str] = ()


class Observer:
    """Ignores everything; used by many threads at once."""

    def noted(self, entry: Entry) -> None:
        """Observe a line of the event log."""

    def answered(self, status: int) -> None:
        """Observe an answer to a sender, by its HTTP status."""

    def settled(self, queue: str, result: Result) -> None:
        """Observe the result of a message."""


_BATCH = 50
_NOW = timedelta(0)
_LONGEST_WAIT = 5.0
_AFTER_A_FAILURE = 1.0


class Source(Struct, frozen=True):
    """An inbox with what works on its messages.

    At most `workers` do at once. After each batch a worker rests for `rests` times as long.
    """

    queue: SqliteQueue
    inbox: Inbox
    workers: int
    rests: int = 0


class Consumer:
    """Takes messages of all inboxes in one file until it is stopped."""

    def __init__(
        self,
        inboxes: Database,
        sources: Mapping[str, Source],
        log: Log,
        observer: Observer | None = None,
    ) -> None:
        self._inboxes = inboxes
        self._sources = sources
        self._log = log
        self._observer = observer or Observer()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._free = {name: source.workers for name, source in sources.items()}
        self._in_flight: dict[int, tuple[SqliteQueue, Sequence[Delivery]]] = {}
        self._pool = ThreadPoolExecutor(sum(self._free.values()), thread_name_prefix="worker")
        self._thread = threading.Thread(target=self._consume, name="consumer")

    def start(self) -> None:
        """Begin to take messages."""
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more, finish what is in flight, and end."""
        self._stopping.set()
        self._inboxes.notify()
        self._thread.join()
        self._pool.shutdown()

    def extend(self) -> None:
        """Hold what is in flight for longer, so that nobody else takes it."""
        for queue, deliveries in list(self._in_flight.values()):
            # The last of each group, which is held as a whole.
            for delivery in {each.message.group: each for each in deliveries}.values():
                queue.extend(delivery)

    def _consume(self) -> None:
        while not self._stopping.is_set():
            try:
                seen = self._inboxes.seen()
                names, due = self._ready()
                # Not any(): each of them gets a worker.
                if not sum([self._begin(name) for name in names]):
                    rest = _LONGEST_WAIT if due is None else min(due, _LONGEST_WAIT)
                    self._inboxes.wait(rest, seen)
            except Exception as error:  # noqa: BLE001 - it outlives whatever it meets
                self._log.error("Failed to take messages", error)
                self._stopping.wait(_AFTER_A_FAILURE)

    def _ready(self) -> tuple[Collection[str], float | None]:
        with self._lock:
            free = [name for name, count in self._free.items() if count]
        # All are in one file: any queue can answer for the others.
        return next(iter(self._sources.values())).queue.ready(free)

    def _begin(self, name: str) -> bool:
        """Have a worker take on what an inbox has; say whether it has anything."""
        source = self._sources[name]
        taken = source.queue.receive(_BATCH, wait=_NOW)
        if taken:
            with self._lock:
                self._free[name] -= 1
            self._pool.submit(self._work, name, source, taken)
        return bool(taken)

    def _work(self, name: str, source: Source, taken: Sequence[Delivery]) -> None:
        """Work on one batch after the other until the inbox has nothing left."""
        try:
            while taken:
                taken = self._work_on(name, source, taken)
        except Exception as error:  # noqa: BLE001 - what is in flight comes again after its timeout
            self._log.error("Failed between messages", error, inbox=name)
            self._stopping.wait(_AFTER_A_FAILURE)
        finally:
            self._in_flight.pop(threading.get_ident(), None)
            with self._lock:
                self._free[name] += 1
            self._inboxes.notify()

    def _work_on(self, name: str, source: Source, taken: Sequence[Delivery]) -> Sequence[Delivery]:
        """Work on a batch and settle it; return the next one."""
        self._in_flight[threading.get_ident()] = source.queue, taken
        begun = time.monotonic()
        done = list(source.inbox.work(taken))
        took = time.monotonic() - begun
        more = 0 if source.rests or self._stopping.is_set() else _BATCH
        results, taken = source.queue.exchange(done, more)
        for became in results:
            self._observer.settled(name, became)
            if isinstance(became, GivenUp):
                self._log.warning(
                    "Moved a message to the dead letters", inbox=name, reason=became.reason
                )
        self._stopping.wait(took * source.rests)
        return taken
