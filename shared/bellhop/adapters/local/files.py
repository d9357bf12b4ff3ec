"""Files that are there whole or not at all, whatever happens while they are written.

SQLite's result code decides; the exception's class decides where there is none.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    PermanentError,
    TemporaryError,
    TooLargeError,
)

_FULL = "the disk is full; free some space"
_DAMAGED = "it is damaged or no database; restore it, or move it away to start with an empty one"

RESULTS: Mapping[int, tuple[type[BellhopError], str]] = {
    sqlite3.SQLITE_BUSY: (TemporaryError, "another process has held it for too long"),
    sqlite3.SQLITE_LOCKED: (TemporaryError, "another process has held it for too long"),
    sqlite3.SQLITE_PROTOCOL: (TemporaryError, "another process has held it for too long"),
    sqlite3.SQLITE_FULL: (TemporaryError, _FULL),
    sqlite3.SQLITE_IOERR: (TemporaryError, "the disk failed to read or write it"),
    sqlite3.SQLITE_NOMEM: (TemporaryError, "there is not enough memory"),
    sqlite3.SQLITE_INTERRUPT: (TemporaryError, "the work was interrupted"),
    sqlite3.SQLITE_SCHEMA: (TemporaryError, "its tables changed meanwhile"),
    sqlite3.SQLITE_CORRUPT: (InvalidError, _DAMAGED),
    sqlite3.SQLITE_NOTADB: (InvalidError, _DAMAGED),
    sqlite3.SQLITE_FORMAT: (InvalidError, _DAMAGED),
    sqlite3.SQLITE_TOOBIG: (TooLargeError, "a value is too large for it"),
    sqlite3.SQLITE_CANTOPEN: (DeniedError, "it cannot be opened; look at the folder's rights"),
    sqlite3.SQLITE_READONLY: (DeniedError, "it may not be written; look at the file's rights"),
    sqlite3.SQLITE_PERM: (DeniedError, "it may not be used; look at the file's rights"),
    sqlite3.SQLITE_AUTH: (DeniedError, "it may not be used; look at the file's rights"),
}
"""By SQLite's primary result code."""

EXTENDED: Mapping[int, tuple[type[BellhopError], str]] = {
    # The index of the write-ahead log is the one file whose growth has a code of its own.
    sqlite3.SQLITE_IOERR_SHMSIZE: (TemporaryError, _FULL),
}
"""By SQLite's extended result code, where it says more than the primary one."""

CLASSES: Mapping[type[Exception], tuple[type[BellhopError], str]] = {
    sqlite3.OperationalError: (TemporaryError, "SQLite failed"),
    sqlite3.InternalError: (TemporaryError, "SQLite failed"),
    sqlite3.DataError: (InvalidError, "a value does not fit"),
    sqlite3.IntegrityError: (PermanentError, "a rule of its tables was broken"),
    sqlite3.ProgrammingError: (PermanentError, "it was used wrongly"),
    sqlite3.InterfaceError: (PermanentError, "it was used wrongly"),
    sqlite3.NotSupportedError: (PermanentError, "this SQLite is too old"),
    sqlite3.DatabaseError: (TemporaryError, "SQLite failed"),
    sqlite3.Error: (TemporaryError, "SQLite failed"),
    sqlite3.Warning: (TemporaryError, "SQLite failed"),
    OSError: (TemporaryError, "the file system failed"),
}
"""By class, the nearest of an exception's ancestors, where no code says more."""

NUMBERS: Mapping[int, tuple[type[BellhopError], str]] = {
    errno.EACCES: (DeniedError, "it may not be used; look at the file's rights"),
    errno.EPERM: (DeniedError, "it may not be used; look at the file's rights"),
    errno.EROFS: (DeniedError, "the file system is read-only"),
    errno.ENOSPC: (TemporaryError, _FULL),
    errno.EDQUOT: (TemporaryError, _FULL),
    errno.EFBIG: (TooLargeError, "it is too large for the file system"),
    errno.ENAMETOOLONG: (InvalidError, "its name is too long"),
    errno.ENOTDIR: (InvalidError, "there is a file where a folder should be"),
    errno.EEXIST: (InvalidError, "there is a file where a folder should be"),
    errno.EISDIR: (InvalidError, "there is a folder where a file should be"),
}
"""By the operating system's error number."""


def translate(error: Exception, path: Path) -> BellhopError:
    """Return Bellhop's error for one of sqlite3's or the operating system's about `path`."""
    kind, why = _entry(error)
    return kind(f"cannot use the file {str(path)!r}: {why}", reason=_reason(error))


def _entry(error: Exception) -> tuple[type[BellhopError], str]:
    if isinstance(error, OSError):
        return NUMBERS.get(error.errno or 0, CLASSES[OSError])
    code = getattr(error, "sqlite_errorcode", 0)
    if code in EXTENDED:
        return EXTENDED[code]
    # An extended code keeps its primary one in the lowest byte.
    if code & 0xFF in RESULTS:
        return RESULTS[code & 0xFF]
    return next(CLASSES[ancestor] for ancestor in type(error).__mro__ if ancestor in CLASSES)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    return name


_UNFINISHED = ".unfinished-"
_ABANDONED_SECONDS = 3600.0


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what the operating system says about `path` as Bellhop's errors."""
    try:
        yield
    except OSError as error:
        raise translate(error, path) from error


def prepare(folder: Path) -> None:
    """Make a folder closed to others, and clear it of what killed writers left behind."""
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        for path in folder.glob(f"**/{_UNFINISHED}*"):
            # Another process may be writing, or clearing, at this moment.
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()


def write_whole(path: Path, value: bytes) -> None:
    """Write a file, 0600, so that readers see the older or the newer one and never a part."""
    with translated(path):
        path.parent.mkdir(exist_ok=True, mode=0o700)
        unfinished = path.parent / f"{_UNFINISHED}{os.urandom(16).hex()}"
        try:
            with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def read_at_most(path: Path, limit: int) -> bytes:
    """Read a file whatever it is: a device has no end, and a pipe may have none.

    Raises:
        OSError: it cannot be read.
        TooLargeError: it has more than `limit` bytes.
    """
    with path.open("rb") as file:
        return bounded(file, limit, str(path))


def read_regular(path: Path, limit: int) -> bytes:
    """Read a file that somebody else's file names, and that must be one: no device, no pipe.

    Raises:
        OSError: it cannot be read.
        InvalidError: it is not a regular file.
        TooLargeError: it has more than `limit` bytes.
    """
    # A pipe is opened without waiting for somebody to write into it.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidError(f"cannot read '{path}': it is not a regular file")
        return bounded(file, limit, str(path))


def bounded(file: BinaryIO, limit: int, name: str) -> bytes:
    """Read all of a stream.

    Raises:
        TooLargeError: it has more than `limit` bytes.
    """
    content = file.read(limit + 1)
    if len(content) > limit:
        raise TooLargeError(f"cannot read '{name}': it has more than {limit} bytes")
    return content


def remove(path: Path) -> None:
    """Delete a file for good; one that is not there is fine."""
    with translated(path), suppress(FileNotFoundError):
        path.unlink()
        _sync(path.parent)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
