"""CloudEvents that came by core NATS and are not sent yet, on disk: NATS itself keeps none of them.

It is bounded, and says so where there is no more room: what is not on it is lost, as it is for any
subscriber of core NATS that is away. What JetStream keeps is not here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bellhop.adapters.local.database import Database, Schema

ROOM_EVENTS = 10_000
ROOM_BYTES = 32 * 1024 * 1024
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

    Raises:
        InvalidError: the file is not a shelf, or is damaged.
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
        """Say if there is room for nothing more."""
        return len(self) >= ROOM_EVENTS or int(self._bytes) >= ROOM_BYTES

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
                    gone = execute(
                        "DELETE FROM event WHERE number = ? RETURNING length(body)", (number,)
                    )
                    sizes += [size for (size,) in gone]
            self._events -= len(sizes)
            self._bytes -= sum(sizes)

    def close(self) -> None:
        """Close the file."""
        self._database.close()
