"""The time of a database file: it passes with the machine's, and no clock that is set moves it.

    wall clock   12:00   12:01 ─► a day ahead ─► 12:02 ─► …  │ off │  14:00
    timeline     12:00   12:01            12:02  …      12:30 │     │  12:30

It begins at the wall clock, at the first use of the file, and goes on by the time since boot. A
row of the file says where it is: which boot, and what to add to the time since that boot. While
the machine is off it stands still: only the wall clock knows how long that was, and it may be
wrong just then.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop.adapters.local.clock import to_microseconds
from bellhop.adapters.local.database import Database
from bellhop.ports.clock import Clock

TABLE = """CREATE TABLE timeline (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot TEXT NOT NULL,
    base INTEGER NOT NULL,
    latest INTEGER NOT NULL
) STRICT"""
"""The migration that gives a file its timeline."""

_Row = tuple[str, int, int]
_MICROSECOND = timedelta(microseconds=1)
_READ = "SELECT boot, base, latest FROM timeline"
_WRITE = "INSERT OR REPLACE INTO timeline VALUES (1, ?, ?, ?)"
_EVERY = 60_000_000
"""Microseconds after which the time is written to the file again: after a boot it goes on there."""


class Timeline:
    """Microseconds of a file's own time; for any number of threads and processes.

    `latest` is a query for the latest moment that the file knows, beside the one that was noted.
    """

    def __init__(self, database: Database, clock: Clock, *, latest: str = "SELECT 0") -> None:
        self._database = database
        self._clock = clock
        self._noted = 0
        # At once: later may be within a transaction of the file.
        self._base = self._begin(latest)

    def now(self) -> int:
        """Return the present moment."""
        return self._base + self._steady()

    def moment(self, at: datetime) -> int:
        """Return the moment that is as far from now as a time of the wall clock is."""
        return self.now() + (at - self._clock.now()) // _MICROSECOND

    def time(self, moment: int) -> datetime:
        """Return the time of the wall clock that is as far from now as a moment is."""
        return self._clock.now() + (moment - self.now()) * _MICROSECOND

    def note(self) -> None:
        """Note in the file how late it is, once a minute."""
        now = self.now()
        if now - self._noted >= _EVERY:
            self._noted = now
            self._database.rows("UPDATE timeline SET latest = max(latest, ?)", (now,))

    def _begin(self, latest: str) -> int:
        """Return what to add to the time since boot; after another boot, go on where it ended."""
        found = self._database.rows(_READ)
        if not found or found[0][0] != self._clock.boot():
            if self._database.still:
                return self._continue(found, self._database.rows(latest))
            found = self._renew(latest)
        [(_, base, noted)] = found
        # The machine may have been set back to a snapshot, without this file.
        return max(base, noted - self._steady())

    def _renew(self, latest: str) -> list[_Row]:
        with self._database.transaction() as execute:
            found = execute(_READ).fetchall()
            if found and found[0][0] == self._clock.boot():
                return found
            base = self._continue(found, execute(latest).fetchall())
            row = self._clock.boot(), base, base + self._steady()
            execute(_WRITE, row)
        return [row]

    def _continue(self, found: list[_Row], latest: list[tuple[int | None]]) -> int:
        begin = max(found[0][2], latest[0][0] or 0) if found else None
        begin = to_microseconds(self._clock.now()) if begin is None else begin
        return begin - self._steady()

    def _steady(self) -> int:
        return self._clock.steady() // _MICROSECOND
