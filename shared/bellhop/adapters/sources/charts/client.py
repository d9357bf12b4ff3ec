"""Requests for charts, the archives that they lead to, and the cache of these on disk.

The name of a file has the digest of its content, so that a damaged file is fetched again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from bellhop.adapters.egress.source_client import SourceClient
from bellhop.errors import TemporaryError


class ChartClient(SourceClient, frozen=True):
    """Requests for one chart; `task` begins each error: "cannot find chart 'a' in 'b'"."""

    login_source: ClassVar[str] = "the repository's Secret"
    address: ClassVar[str] = "the repository's address"


class Descriptor(Struct, frozen=True):
    """The archive of one version; `digest` is its SHA-256, empty if the index has none."""

    chart: str
    version: str
    url: str
    digest: str = ""


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of an archive."""
    return hashlib.sha256(content).hexdigest()


MOST_BYTES = 512 << 20

_ENDING = ".tgz"
_UNFINISHED = ".unfinished-"


class ArchiveCache:
    """Archives in a folder of Bellhop's; the least recently used ones are evicted first."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most = most

    def get(self, key: str) -> tuple[Path, bytes] | None:
        """Return the path of an archive and its content; None if it is missing or damaged."""
        for path in self._folder.glob(f"{_hash(key)}-*{_ENDING}"):
            # A file that cannot be read is fetched again.
            with suppress(OSError):
                content = path.read_bytes()
                if path.stem.rpartition("-")[2] == digest_of(content):
                    os.utime(path)
                    return path, content
                path.unlink()
        return None

    def put(self, key: str, content: bytes) -> Path:
        """Write an archive, whole or not at all, and evict others until all fit.

        Raises:
            TemporaryError: the folder does not take it.
        """
        path = self._folder / f"{_hash(key)}-{digest_of(content)}{_ENDING}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(path, content)
            self._evict(path)
        except OSError as error:
            raise TemporaryError(
                f"cannot write a chart into '{self._folder}': {error.strerror}; free some space"
                " there"
            ) from error
        return path

    def _write(self, path: Path, content: bytes) -> None:
        descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise

    def _evict(self, fresh: Path) -> None:
        """Delete the least recently used files until the rest fits; keep the fresh one."""
        files = []
        for path in self._folder.iterdir():
            # Another process may delete it at this moment.
            with suppress(FileNotFoundError):
                state = path.stat()
                files.append((path != fresh, state.st_mtime_ns, state.st_size, path))
        left = self._most
        # Newest first, and the fresh one before all.
        for _, _, size, path in sorted(files, key=lambda file: (file[0], -file[1])):
            left -= size
            if left < 0 and path != fresh:
                path.unlink(missing_ok=True)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
