"""One SQLite file, shared by threads and processes: what the store and the queue have in common.

One connection and one lock for each object: SQLite lets one writer in at a time anyway, and waiting
on a lock of Python's wakes at once, where SQLite's own busy handler sleeps a millisecond or more.
Other processes, and other objects, are waited for by that busy handler.

The file is in WAL mode with `synchronous=NORMAL`: a commit is a write without an fsync. A killed
process loses nothing that was acknowledged, since the kernel has it; a power cut may lose the last
instants, never the file, and the next resync finds what they held. `FULL` would put an fsync, which
is milliseconds, into every step of every event.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec import Struct

from bellhop.adapters.local.files import translate
from bellhop.errors import BellhopError, InvalidError, MissingError, PermanentError

_Parameters = Sequence[Any] | Mapping[str, Any]
_BUSY_SECONDS = 10.0
_OPEN_ATTEMPTS = 50
_HEADER = """
    SELECT (SELECT user_version FROM pragma_user_version),
           (SELECT application_id FROM pragma_application_id),
           (SELECT count(*) FROM sqlite_master)"""
_POLL_SECONDS = 0.05
"""How often `wait` looks whether another process has written."""

_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    # 32 MB between checkpoints, each of which is an fsync or two in somebody's commit.
    "PRAGMA wal_autocheckpoint = 8192",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA foreign_keys = OFF",
)


class Schema(Struct, frozen=True):
    """The layout of a file, and the migrations to its newest version.

    `application` is SQLite's application_id: a queue's file is not taken for a store's.
    `migrations[n]` are the statements that lead from version n to n + 1.
    """

    noun: str
    application: int
    migrations: Sequence[Sequence[str]]

    @property
    def version(self) -> int:
        """Return the version that this code writes."""
        return len(self.migrations)


class Still(Struct, frozen=True):
    """A file that is only read: nothing is made, migrated or written.

    So it can be read on a full disk, and while another process works on it.
    """

    path: Path


Place = Path | str | Still


class _Forks:
    """Counts the forks between the process that loaded this module and the present one.

    Asking the kernel for the process at each statement would take a tenth of its time.
    """

    count = 0
    _watching = False

    @classmethod
    def watch(cls) -> None:
        """Count from now on, as no file was opened before."""
        if not cls._watching:
            cls._watching = True
            os.register_at_fork(after_in_child=cls._count_fork)

    @classmethod
    def _count_fork(cls) -> None:
        cls.count += 1


@dataclass(slots=True)
class _Session:
    connection: sqlite3.Connection
    forks: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    changed: threading.Condition = field(default_factory=threading.Condition)
    notified: int = 0
    inherited: _Session | None = None
    closed: bool = False


class Seen(NamedTuple):
    """The known writes of a file: this object's notifications, and SQLite's version."""

    notified: int
    version: int


class Database:
    """A file with a schema; every sqlite3 exception leaves here as one of Bellhop's.

    Raises:
        InvalidError: the file is of another kind, of a newer version, or damaged; or it is to stay
            as it is, and of an earlier version.
        MissingError: it is to stay as it is, and is not there.
        TemporaryError: the file is locked for too long, or the disk is full.
    """

    def __init__(self, path: Place, schema: Schema) -> None:
        self.still = isinstance(path, Still)
        self.path = Path(path.path if isinstance(path, Still) else path).absolute()
        self._schema = schema
        _Forks.watch()
        self._session = self._open(inherited=None)

    def rows(self, statement: str, parameters: _Parameters = ()) -> list[Any]:
        """Run one statement in a transaction of its own and return all its rows."""
        session = self._current()
        try:
            with session.lock:
                return session.connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    @contextmanager
    def transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Yield `execute` within a write transaction, committed whole or not at all."""
        session = self._current()
        connection = session.connection
        with session.lock:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    connection.rollback()
                if isinstance(error, sqlite3.Error):
                    raise translate(error, self.path) from error
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Have all reads of the block see the file as it is now; others write on meanwhile.

        This object can write nothing within the block.
        """
        self.rows("PRAGMA query_only = ON")
        try:
            self.rows("BEGIN")
            # The first read fixes the moment.
            self.rows(_HEADER)
            yield
        finally:
            # SQLite ends the transaction by itself after some errors, such as that of a full disk.
            with suppress(BellhopError):
                self.rows("ROLLBACK")
            self.rows("PRAGMA query_only = OFF")

    def change(self) -> int:
        """Return a number that differs once another process, or connection, has written."""
        found: int = self.rows("PRAGMA data_version")[0][0]
        return found

    def seen(self) -> Seen:
        """Return what is known of the file's writes, to `wait` for the next one."""
        return Seen(self._current().notified, self.change())

    def notify(self) -> None:
        """Wake all that wait for a write: what was written through this object is for them."""
        session = self._current()
        with session.changed:
            session.notified += 1
            session.changed.notify_all()

    def wait(self, seconds: float, seen: Seen) -> bool:
        """Wait until something was notified, or another process wrote, since it was seen.

        Return False after so many seconds without either.
        """
        session, deadline = self._current(), time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            with session.changed:
                if session.changed.wait_for(
                    lambda: session.notified != seen.notified, min(left, _POLL_SECONDS)
                ):
                    return True
            if self.change() != seen.version:
                return True
        return False

    def close(self) -> None:
        """Close the file; a second time is fine, anything else that is asked of it fails."""
        session = self._session
        if session.forks != _Forks.count:
            # The parent's: not to be touched.
            return
        with session.lock:
            session.closed = True
            session.connection.close()

    def _current(self) -> _Session:
        session = self._session
        if session.forks != _Forks.count:
            # A connection must not cross a fork, not even to be closed: closing drops the
            # parent's locks from under it. So it is kept, unused, and another one is opened.
            # SQLite's memory of its locks crosses too: a child of a fork in mid-transaction is
            # refused as if the file was locked, and a parent must not close while its child writes.
            # Processes that are started without a fork, as all of ours are, have no such limits.
            session = self._session = self._open(inherited=session)
        if session.closed:
            raise PermanentError(f"cannot use the file {str(self.path)!r}: it was closed")
        return session

    def _open(self, *, inherited: _Session | None) -> _Session:
        try:
            if not self.still:
                self._make_file()
        except OSError as error:
            raise translate(error, self.path) from error
        return _Session(self._connect(), _Forks.count, inherited=inherited)

    def _make_file(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        # SQLite gives its side files the mode of this one: it is made here, closed to others.
        # Only made, never opened again: closing any descriptor of a file drops all locks that
        # this process has on it (POSIX), and the next process to close would then remove the
        # write-ahead log from under our other connections.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def _connect(self) -> sqlite3.Connection:
        connection = None
        try:
            connection = sqlite3.connect(
                self._still_uri() if self.still else self.path,
                uri=self.still,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            self._prepare(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise
        return connection

    def _still_uri(self) -> str:
        """Return the file's URI for reading only.

        Without a write-ahead log beside it no process has it open, and all of it is in the file:
        read as immutable, it needs no side files, which SQLite would have to make.
        """
        if not self.path.is_file():
            raise MissingError(f"cannot read the {self._schema.noun} {str(self.path)!r}: no file")
        is_closed = not self.path.with_name(f"{self.path.name}-wal").exists()
        return f"file:{quote(str(self.path))}?mode=ro" + ("&immutable=1" if is_closed else "")

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Checked before the first write: a file that is not ours is left as it is.
        version = self._check(connection)
        if self.still:
            if version < self._schema.version:
                raise InvalidError(
                    f"cannot read the {self._schema.noun} {str(self.path)!r}: an earlier Bellhop"
                    f" wrote it (version {version}, this one knows {self._schema.version});"
                    " restart `bellhop serve`, which migrates it"
                )
            return
        _write_ahead(connection)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        if _pragma(connection, "user_version") == self._schema.version:
            return
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have migrated while this one waited for the lock.
        version = self._check(connection)
        for migration in self._schema.migrations[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self._schema.application}")
        connection.execute(f"PRAGMA user_version = {self._schema.version}")
        connection.execute("COMMIT")

    def _check(self, connection: sqlite3.Connection) -> int:
        # One statement sees one state of the file: another process may be making it.
        version: int
        version, application, tables = connection.execute(_HEADER).fetchone()
        if application != self._schema.application and (application or version or tables):
            raise InvalidError(
                f"cannot open the file {str(self.path)!r} as a {self._schema.noun}: it belongs to"
                " something else; name another file"
            )
        if version > self._schema.version:
            raise InvalidError(
                f"cannot open the {self._schema.noun} {str(self.path)!r}: a newer Bellhop wrote it"
                f" (version {version}, this one knows {self._schema.version}); upgrade Bellhop"
            )
        return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    found: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return found


def _write_ahead(connection: sqlite3.Connection) -> None:
    # Two processes that open a new file at once may meet in this change of mode, and SQLite
    # answers one of them "locked" without asking its busy handler.
    for attempt in range(_OPEN_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == _OPEN_ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            return
