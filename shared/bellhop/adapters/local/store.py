"""The managed store in one SQLite file, and the blob store in a folder.

A file is named for the SHA-256 of the blob's name, so that every name is safe and none is too long.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bellhop.adapters.local.clock import SystemClock, from_microseconds, to_microseconds
from bellhop.adapters.local.database import Database, Place, Schema
from bellhop.adapters.local.files import prepare, remove, translated, write_whole
from bellhop.adapters.local.timeline import TABLE, Timeline
from bellhop.errors import MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item
from bellhop.state.items import (
    after_all,
    check_bound,
    check_key,
    expiry_of,
    make_stale_error,
    text_of,
)

_SCHEMA = Schema(
    noun="store",
    application=0x42454C53,
    migrations=(
        (
            """CREATE TABLE items (
                partition TEXT NOT NULL,
                sort TEXT NOT NULL,
                value TEXT NOT NULL,
                version INTEGER NOT NULL,
                expires_at INTEGER,
                PRIMARY KEY (partition, sort)
            ) STRICT""",
            """CREATE INDEX items_that_expire ON items (expires_at)
               WHERE expires_at IS NOT NULL""",
        ),
        (
            # Versions began at one again whenever an item was created again; tokens never recur.
            """CREATE TABLE kept (
                partition TEXT NOT NULL,
                sort TEXT NOT NULL,
                value TEXT NOT NULL,
                token TEXT NOT NULL,
                expires_at INTEGER,
                PRIMARY KEY (partition, sort)
            ) STRICT""",
            # The one version that was used as a number, the catalog's revision, goes on as one.
            """INSERT INTO kept SELECT partition, sort,
                   CASE partition WHEN 'catalog' THEN json_object('number', version) ELSE value END,
                   lower(hex(randomblob(8))), expires_at FROM items""",
            "DROP TABLE items",
            "ALTER TABLE kept RENAME TO items",
            """CREATE INDEX items_that_expire ON items (expires_at)
               WHERE expires_at IS NOT NULL""",
        ),
        (
            # Ends were those of the wall clock, at which the timeline begins.
            TABLE,
            "ALTER TABLE items ADD COLUMN ends_at INTEGER",
            "UPDATE items SET ends_at = expires_at WHERE expires_at IS NOT NULL",
            "DROP INDEX items_that_expire",
            "CREATE INDEX items_that_end ON items (ends_at) WHERE ends_at IS NOT NULL",
        ),
    ),
)

_ALIVE = "(ends_at IS NULL OR ends_at > :now)"
_KEY = "partition = :partition AND sort = :sort"

_PUT_ANY = """
    INSERT INTO items VALUES (:partition, :sort, :value, :token, :expires_at, :ends_at)
    ON CONFLICT (partition, sort) DO UPDATE SET
        value = excluded.value, token = excluded.token, expires_at = excluded.expires_at,
        ends_at = excluded.ends_at
    RETURNING 1"""
_PUT_ABSENT = _PUT_ANY.replace("RETURNING", "WHERE items.ends_at <= :now RETURNING")
_PUT_TOKEN = f"""
    UPDATE items SET value = :value, token = :token, expires_at = :expires_at, ends_at = :ends_at
    WHERE {_KEY} AND token = :expect AND {_ALIVE}
    RETURNING 1"""  # noqa: S608 - both are constants of this module
_GET = f"SELECT value, token, expires_at FROM items WHERE {_KEY} AND {_ALIVE}"  # noqa: S608
_DELETE = f"""
    DELETE FROM items WHERE {_KEY} AND {_ALIVE} AND (:expect IS NULL OR token = :expect)
    RETURNING 1"""  # noqa: S608
_PAGE = f"""
    SELECT sort, value, token, expires_at FROM items
    WHERE partition = :partition AND sort > :start AND sort < :end AND {_ALIVE}
    ORDER BY sort LIMIT :count"""  # noqa: S608
_PAGE_FROM = _PAGE.replace("sort > :start", "sort >= :start")
_ALL = f"""
    SELECT rowid, partition, sort, value, token, expires_at FROM items
    WHERE rowid > :after AND {_ALIVE}
    ORDER BY rowid LIMIT :count"""  # noqa: S608
_BACKWARDS = {
    statement: statement.replace("ORDER BY sort", "ORDER BY sort DESC")
    for statement in (_PAGE, _PAGE_FROM)
}
_DELETE_EXPIRED = """
    DELETE FROM items WHERE rowid IN
        (SELECT rowid FROM items WHERE ends_at <= :now ORDER BY ends_at LIMIT :count)
    RETURNING 1"""

_decode = json.JSONDecoder().raw_decode
"""Reads what `put` wrote, around which nothing has to be looked for."""

_PAGE_SIZE = 64
_TOKEN_BYTES = 8
_UNLIMITED = 1 << 62
_WRITES_BETWEEN_CLEANUPS = 64
_CLEANUP_SIZE = 256


class SqliteStore:
    """Items in one file, used by any number of threads and processes at once.

    No reader sees expired items; writes delete them from the file, a few at a time, and
    `delete_expired` deletes all. An item lasts as long as its writer's clock had it last from then
    on (`ends_at`), by the file's timeline: whatever that clock, or another one, says, and however
    wrong it was.
    """

    def __init__(self, path: Place, *, clock: Clock | None = None) -> None:
        self._database = Database(path, _SCHEMA)
        self._timeline = Timeline(self._database, clock or SystemClock())
        self._writes = 0

    def get(self, partition: str, sort: str) -> Item | None:
        key = _key(partition, sort)
        rows = self._database.rows(_GET, {**key, "now": self._now()})
        return _item(partition, sort, *rows[0]) if rows else None

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        statement = {ANY: _PUT_ANY, ABSENT: _PUT_ABSENT}.get(expect, _PUT_TOKEN)
        token, expiry = os.urandom(_TOKEN_BYTES).hex(), expiry_of(item)
        row = {
            **_key(item.partition, item.sort),
            "value": text_of(item),
            "token": token,
            "expires_at": expiry and to_microseconds(expiry),
            "ends_at": expiry and self._timeline.moment(expiry),
            "now": self._now(),
        }
        if statement is _PUT_TOKEN:
            row["expect"] = expect
        if not self._database.rows(statement, row):
            raise make_stale_error("write", item.partition, item.sort, expect)
        self._tidy()
        return Item(item.partition, item.sort, item.value, token, item.expires_at)

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        key = {**_key(partition, sort), "now": self._now()}
        if self._database.rows(_DELETE, {**key, "expect": expect}):
            return True
        if expect == ANY or (expect == ABSENT and not self._database.rows(_GET, key)):
            return False
        raise make_stale_error("delete", partition, sort, expect)

    def query(
        self,
        partition: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int | None = None,
        backwards: bool = False,
    ) -> Iterator[Item]:
        """Yield items page by page; nothing is held open between two items, so writes go on."""
        check_bound(partition, prefix)
        if after:
            check_bound(partition, after)
        row: dict[str, Any] = {"partition": partition, "end": _end(prefix)}
        # A prefix is itself the first key that it allows; `after` is the last one to leave out.
        statement, row["start"] = (_PAGE_FROM, prefix) if prefix > after else (_PAGE, after)
        statement = _BACKWARDS[statement] if backwards else statement
        left = _UNLIMITED if limit is None else limit
        while left > 0:
            row |= {"count": min(left, _PAGE_SIZE), "now": self._now()}
            rows = self._database.rows(statement, row)
            for sort, *columns in rows:
                yield _item(partition, sort, *columns)
            if len(rows) < row["count"]:
                return
            left -= len(rows)
            if backwards:
                row["end"] = rows[-1][0]
            else:
                statement, row["start"] = _PAGE, rows[-1][0]

    def all(self) -> Iterator[Item]:
        row = {"after": 0, "count": _PAGE_SIZE}
        while rows := self._database.rows(_ALL, {**row, "now": self._now()}):
            for _, *columns in rows:
                yield _item(*columns)
            row["after"] = rows[-1][0]

    def delete_expired(self) -> int:
        """Delete every expired item from the file; return how many there were."""
        self._timeline.note()
        deleted = 0
        while count := self._delete_expired():
            deleted += count
        return deleted

    def mark(self) -> tuple[int, int]:
        """Return what differs once anybody has put an item, in this process or another one."""
        return self._database.change(), self._writes

    def snapshot(self) -> AbstractContextManager[None]:
        """Have reads within the block see the items as they are now; writes within it fail."""
        return self._database.snapshot()

    def close(self) -> None:
        self._database.close()

    def _tidy(self) -> None:
        self._writes += 1
        if self._writes % _WRITES_BETWEEN_CLEANUPS == 0:
            self._delete_expired()

    def _delete_expired(self) -> int:
        return len(
            self._database.rows(_DELETE_EXPIRED, {"now": self._now(), "count": _CLEANUP_SIZE})
        )

    def _now(self) -> int:
        return self._timeline.now()


def _key(partition: str, sort: str) -> dict[str, Any]:
    check_key(partition, sort)
    return {"partition": partition, "sort": sort}


def _end(prefix: str) -> str | bytes:
    end = after_all(prefix)
    # SQLite sorts every blob after every text.
    return b"" if end is None else end


def _item(partition: str, sort: str, value: str, token: str, expires_at: int | None) -> Item:
    expiry = None if expires_at is None else from_microseconds(expires_at)
    return Item(partition, sort, _decode(value)[0], token, expiry)


class FileBlobs:
    """Bytes by name; a blob is replaced whole, while readers of the older one keep reading it.

    Of a `still` folder nothing is made: it is read as it is.
    """

    def __init__(self, folder: Path | str, *, still: bool = False) -> None:
        self._folder = Path(folder).absolute()
        if not still:
            prepare(self._folder)

    def get(self, name: str) -> bytes:
        path = self._path(name)
        with translated(path):
            try:
                return path.read_bytes()
            except FileNotFoundError as error:
                raise MissingError(f"there is no blob {name!r}") from error

    def put(self, name: str, value: bytes) -> None:
        write_whole(self._path(name), value)

    def delete(self, name: str) -> None:
        remove(self._path(name))

    def _path(self, name: str) -> Path:
        # A lone surrogate is a name like any other here: only its digest meets the disk.
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return self._folder / digest[:2] / digest
