"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bellhop.adapters.local.failures import translate
from bellhop.errors import InvalidError, TooLargeError

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
