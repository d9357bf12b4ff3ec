"""The sender: CloudEvents of NATS go to ingest, and are released only then.

The consumer puts events of JetStream here; those in the store are fetched some at a time, so that
neither delays the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bellhop.adapters.local.database import Database, Schema
from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import BellhopError
from bellhop.forwarder.batch_sender import BatchSender
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import Answer, IngestClient
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.logs import Log

MOST_EVENTS = 10_000
MOST_BYTES = 32 * 1024 * 1024
"""From here on events are dropped."""

FILE = "events.db"

_SCHEMA = Schema(
    noun="shelf",
    application=0x42454C45,
    migrations=(
        (
            """CREATE TABLE event (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                subject TEXT NOT NULL,
                came TEXT NOT NULL,
                body BLOB NOT NULL
            ) STRICT""",
        ),
    ),
)


class StoredMessage(NamedTuple):
    """One event: its number grows, `came` is a time in ISO 8601, `body` is JSON."""

    number: int
    subject: str
    came: str
    body: bytes


class MessageStore:
    """The rows, the oldest first; shared between threads.

    NATS itself stores none of these events. Events beyond the bound are lost and reported, as for
    any absent subscriber of core NATS. Events of JetStream are not here: it stores them itself.

    Raises:
        InvalidError: the file is none of these, or is damaged.
        TemporaryError: the disk is full.
    """

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder / FILE, _SCHEMA)
        self._lock = threading.Lock()
        [(self._events, self._bytes, self.newest)] = self._database.rows(
            "SELECT count(*), coalesce(sum(length(body)), 0), coalesce(max(number), 0) FROM event"
        )

    def __len__(self) -> int:
        return int(self._events)

    @property
    def full(self) -> bool:
        """Return whether nothing more is taken."""
        return len(self) >= MOST_EVENTS or int(self._bytes) >= MOST_BYTES

    def put(self, subject: str, came: str, body: bytes) -> None:
        """Keep an event; once this returns, a kill does not lose it."""
        with self._lock:
            [(number,)] = self._database.rows(
                "INSERT INTO event (subject, came, body) VALUES (?, ?, ?) RETURNING number",
                (subject, came, body),
            )
            self._events += 1
            self._bytes += len(body)
            self.newest = number

    def after(self, number: int, most: int) -> list[StoredMessage]:
        """Return events that came after the one of a number."""
        rows = self._database.rows(
            "SELECT number, subject, came, body FROM event WHERE number > ? ORDER BY number"
            " LIMIT ?",
            (number, most),
        )
        return [StoredMessage(*row) for row in rows]

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop events, each given by its number."""
        with self._lock:
            sizes: list[int] = []
            with self._database.transaction() as execute:
                for number in numbers:
                    deleted = execute(
                        "DELETE FROM event WHERE number = ? RETURNING length(body)", (number,)
                    )
                    sizes += [size for (size,) in deleted]
            self._events -= len(sizes)
            self._bytes -= sum(sizes)

    def close(self) -> None:
        self._database.close()


SOME = 100
"""Events of the store that are in flight at once."""

Settled = Callable[[bool], None]
"""Called once an event is done: True if ingest took it, False if it never will."""


class MessageSender:
    """One thread that sends."""

    def __init__(
        self, ingest_client: IngestClient, store: MessageStore, counts: Counts, log: Log
    ) -> None:
        self._store = store
        self._counts = counts
        self._log = log
        self._outbox = Outbox()
        self._waiting: dict[ObjectKey, Settled] = {}
        self._number = 0
        # How far the store was fetched, and how many of its events are in flight.
        self._fetched = 0
        self._away = 0
        self._batches = BatchSender(ingest_client, self._outbox, self._settle, counts, log)
        self._thread = threading.Thread(target=self._work, name="courier", daemon=True)

    def start(self) -> None:
        """Begin to send; it ends once it is closed."""
        self._thread.start()

    def alive(self) -> bool:
        """Say if it still works."""
        return self._thread.is_alive()

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        self._batches.nudge()

    def wake(self) -> None:
        """Have the store read again."""
        self._outbox.wake()

    def has_capacity(self) -> bool:
        return self._outbox.has_capacity()

    def put(self, subject: str, body: bytes, settled: Settled) -> None:
        """Send an event; another thread calls `settled` with the result."""
        self._number += 1
        key = ObjectKey(CLOUD_EVENT, subject, f"held-{self._number}")
        self._waiting[key] = settled
        self._outbox.put(Item(key, 0, datetime.now(UTC).isoformat(), _body(body)))

    def close(self, seconds: float) -> None:
        """End after the request that is under way, which may take as long as given."""
        self._outbox.close()
        self._batches.end()
        self._thread.join(seconds)

    def _work(self) -> None:
        while self._outbox.is_open:
            batch: list[Item] = []
            try:
                self._fetch()
                batch = self._outbox.take()
                if batch:
                    self._batches.send(batch)
            except Exception as error:  # noqa: BLE001 - nothing may end the only sender
                self._log.error("Failed to send CloudEvents", error)
                self._batches.fail(batch, Answer(0, "internal"))

    def _fetch(self) -> None:
        """Take events from the store that may be in flight."""
        if self._fetched >= self._store.newest or self._away >= SOME:
            return
        for kept in self._store.after(self._fetched, SOME - self._away):
            key = ObjectKey(CLOUD_EVENT, kept.subject, f"kept-{kept.number}")
            self._outbox.put(Item(key, kept.number, kept.came, _body(kept.body)))
            self._fetched = kept.number
            self._away += 1

    def _settle(self, items: Sequence[Item], taken: bool) -> None:  # noqa: FBT001 - BatchSender calls it
        if taken:
            self._counts.add("batches")
        self._counts.add("events" if taken else "events_dropped", len(items))
        self._outbox.settle(items)
        stored = [item for item in items if item.serial]
        self._away -= len(stored)
        # A full disk keeps them there: they are sent again by the next process, which is harmless.
        with suppress(BellhopError):
            self._store.forget(item.serial for item in stored)
        for item in items:
            if settled := self._waiting.pop(item.key, None):
                settled(taken)


def _body(event: bytes) -> bytes:
    return b'{"event":%s}' % event
