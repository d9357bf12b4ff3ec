"""Pending objects of the forwarder, and their journal on disk.

    state before the write    read shows          then
    ──────────────────────    ──────────────────  ──────────────────────────────────
    absent (a create)         absent              not yet
                              the created uid     send it
                              another uid         not yet: that object was there before
    uid and version           the same            not yet
                              absent              deleted
                              anything else       send it
    unknown                   anything            send it

"Not yet" may mean "never": a write that was denied, or one that changed nothing.

One row for each object, however often it changes: so the file is bounded by the number of objects,
and it holds no object, only names. This is why it is not the queue of the embedded mode, which
keeps every message in order; the two share the file handling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.local.database import Database, Schema
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import version_of
from bellhop.ingest.admission import Hint


class ReadBackResult(Enum):
    """The next step after a read."""

    NOT_YET = "not yet"
    SEND = "send"
    DELETED = "deleted"
    NOTHING = "nothing"


class Known(NamedTuple):
    """An object that was there: its uid, and its newest known version."""

    uid: str
    version: int


class PendingObject(Struct, frozen=True):
    """One object that hints concern; they are merged, so that there is one for each object.

    `serial` grows with each hint. `rang` is when the first of them came. `sure` says that all
    hints started from one state, so that reading this state again means that nothing happened.
    It is `own` if all of them are of writes of Bellhop. One that is `named` is not read here: its
    name is all that is sent.
    """

    key: ObjectKey
    uid: str
    before: int
    known: Known | None
    reported_at: str
    serial: int
    sure: bool = True
    own: bool = False
    named: bool = False

    @classmethod
    def of(cls, hint: Hint, reported_at: str, serial: int) -> PendingObject:
        known = Known(hint.uid, hint.before) if hint.uid and hint.before else None
        seen = hint.key, hint.uid, hint.before, known, reported_at, serial
        return cls(*seen, own=hint.own, named=hint.named)

    def merge(self, later: PendingObject) -> PendingObject:
        """Merge a later hint; of one object's hints the newest version wins.

        Hints of several API servers may come in another order.
        """
        stale = later.uid == self.uid and later.before < self.before
        newest = self if stale else later
        return replace(
            newest,
            known=newest.known or later.known or self.known,
            reported_at=min(self.reported_at, later.reported_at),
            serial=later.serial,
            sure=self.sure and later.sure and self._baseline == later._baseline,
            own=self.own and later.own,
            named=self.named and later.named,
        )

    def evaluate(self, state: Mapping[str, Any] | None) -> ReadBackResult:
        """Return the next step for the object's present state; None means that it is absent."""
        if not self.uid:
            return ReadBackResult.NOT_YET if state is None else ReadBackResult.SEND
        if state is None:
            return ReadBackResult.DELETED if self.before else ReadBackResult.NOT_YET
        metadata = state.get("metadata") or {}
        same = metadata.get("uid") == self.uid
        if not self.before:
            return ReadBackResult.SEND if same else ReadBackResult.NOT_YET
        unchanged = same and version_of(metadata) == self.before
        return ReadBackResult.NOT_YET if unchanged else ReadBackResult.SEND

    def is_settled_by(self, seen: Known) -> bool:
        """Return whether an expected write can only have come before the state that was read.

        A write is stored only onto the version in its hint. Once that version has passed, the
        write is stored, or its client tries again, which is another hint.
        """
        return bool(self.uid) and self.uid == seen.uid and self.before < seen.version

    def conclude(self, state: Mapping[str, Any] | None) -> ReadBackResult:
        """Return the next step once the last hint's write can no longer be in flight."""
        result = self.evaluate(state)
        if result is not ReadBackResult.NOT_YET:
            return result
        if state is None:
            return ReadBackResult.DELETED if self.known else ReadBackResult.NOTHING
        # One of several writes happened, perhaps, or the process restarted in between.
        return ReadBackResult.NOTHING if self.sure else ReadBackResult.SEND

    @property
    def _baseline(self) -> Known | None:
        return Known(self.uid, self.before) if self.before else None


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
        ("ALTER TABLE owed ADD COLUMN named INTEGER NOT NULL DEFAULT 0",),
    ),
)

# A row may also stand for an item that was read and is not sent yet: what was known to exist, and
# since when it is owed, must outlive a newer hint.
_PUT = """INSERT INTO owed VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
    uid = excluded.uid, before = excluded.before, serial = excluded.serial,
    named = excluded.named,
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

    def put(self, pending: PendingObject) -> None:
        """Note that an object is owed; once this returns, a kill does not undo it."""
        known = pending.known or Known("", 0)
        row = (
            str(pending.key),
            pending.uid,
            pending.before,
            *known,
            pending.reported_at,
            pending.serial,
            pending.named,
        )
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
                at,
                serial,
                sure=False,
                named=bool(named),
            )
            for key, uid, before, known_uid, known_version, at, serial, named in (
                self._database.rows(
                    """SELECT key, uid, before, known_uid, known_version, rang, serial, named
                       FROM owed ORDER BY rang"""
                )
            )
        ]

    def close(self) -> None:
        self._database.close()
