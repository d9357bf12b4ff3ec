"""The private folder of a call, which holds what strangers wrote, some of it from Secrets.

It is locked as long as its process lives. A process that is killed leaves its folders behind
without a lock, and the next one that makes a folder removes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_PREFIX = "bellhop-call-"


@contextmanager
def private_home(files: Mapping[str, bytes] | None = None) -> Iterator[Path]:
    """Make a folder with files by their paths; remove it afterwards with all that lies in it.

    Raises:
        OSError: no folder can be made.
    """
    remove_abandoned_homes()
    home, lock = _locked()
    try:
        for path, content in (files or {}).items():
            file = home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
        os.close(lock)


@cache
def remove_abandoned_homes() -> None:
    """Remove the folders of processes that were killed; do it once in each process."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Another process, or another user, has those that cannot be locked.
        with suppress(OSError):
            lock = _open(home)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(home)
            finally:
                os.close(lock)


def _locked() -> tuple[Path, int]:
    """Make a folder and lock it; another one if it was removed as abandoned before its lock."""
    while True:
        home = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            lock = _open(home)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if home.exists():
                return home, lock
            os.close(lock)


def _open(home: Path) -> int:
    return os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
