"""Which objects are owed to ingest, in a SQLite file that survives a kill.

One row for each object, however often it rings: so the file is bounded by the number of objects,
and it holds no object, only names. This is why it is not the queue of the embedded mode, which
keeps every message in order; the two share the file handling.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bellhop.adapters.local.database import Database, Schema
from bellhop.core.gvk import ObjectKey
from bellhop.forwarder.pending import Known, PendingObject

_SCHEMA = Schema(
    noun="spool",
    application=0x42454C46,
    migrations=(
        (
            """CREATE TABLE owed (
                key TEXT PRIMARY KEY,
                uid TEXT NOT NULL,
                before INTEGER NOT NULL,
                known_uid TEXT NOT NULL,
                known_version INTEGER NOT NULL,
                rang TEXT NOT NULL,
                serial INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID""",
        ),
    ),
)

# A row may also stand for an item that was read and is not sent yet: what was known to exist, and
# since when it is owed, must outlive a newer hint.
_PUT = """INSERT INTO owed VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
    uid = excluded.uid, before = excluded.before, serial = excluded.serial,
    rang = min(rang, excluded.rang),
    known_version = iif(excluded.known_uid = '', known_version, excluded.known_version),
    known_uid = iif(excluded.known_uid = '', known_uid, excluded.known_uid)"""


class Journal:
    """The rows, by object; shared between threads.

    Raises:
        InvalidError: the file is not a spool, or is damaged.
        TemporaryError: the disk is full.
    """

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder / "owed.db", _SCHEMA)

    def put(self, debt: PendingObject) -> None:
        """Note that an object is owed; once this returns, a kill does not undo it."""
        known = debt.known or Known("", 0)
        row = (str(debt.key), debt.uid, debt.before, *known, debt.rang, debt.serial)
        self._database.rows(_PUT, row)

    def forget(self, done: Iterable[tuple[ObjectKey, int]]) -> None:
        """Drop objects that are no longer owed, except where a hint later than `serial` came."""
        with self._database.transaction() as execute:
            for key, serial in done:
                execute("DELETE FROM owed WHERE key = ? AND serial <= ?", (str(key), serial))

    def owed(self) -> list[PendingObject]:
        """Return what an earlier process left, the longest owed first; it is not sure of any."""
        return [
            PendingObject(
                ObjectKey.parse(key),
                uid,
                before,
                Known(known_uid, known_version) if known_uid else None,
                rang,
                serial,
                sure=False,
            )
            for key, uid, before, known_uid, known_version, rang, serial in self._database.rows(
                """SELECT key, uid, before, known_uid, known_version, rang, serial
                   FROM owed ORDER BY rang"""
            )
        ]

    def close(self) -> None:
        """Close the file."""
        self._database.close()
