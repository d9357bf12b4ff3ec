"""Write packages: the same bytes for the same files, and whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

SUMS = "SHA256SUMS"
_UNFINISHED = ".unfinished"

_EPOCH = (1980, 1, 1, 0, 0, 0)  # The oldest time that a zip can have.
_RIGHTS, _PROGRAM_RIGHTS = 0o100644 << 16, 0o100755 << 16


def zipped(files: Mapping[str, bytes], programs: Collection[str] = ()) -> bytes:
    """Make a zip of files by their places, of which `programs` may be run; all else is fixed."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as opened:
        for place, content in sorted(files.items()):
            entry = zipfile.ZipInfo(place, _EPOCH)
            entry.create_system = 3  # Unix, wherever it is built.
            entry.external_attr = _PROGRAM_RIGHTS if place in programs else _RIGHTS
            entry.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(entry, content, compresslevel=6)
    return whole.getvalue()


class Folder:
    """A folder that is being filled with packages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sums: dict[str, str] = {}

    def put(self, name: str, content: bytes) -> Path:
        """Write a package that is there whole or not at all, note its sum, and return its path."""
        self._sums[name] = hashlib.sha256(content).hexdigest()
        return self._write(name, content)

    def lay_out(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write files into a folder of their own, in place of what was there."""
        unfinished = self._path / f"{name}{_UNFINISHED}"
        for place, content in files.items():
            (unfinished / place).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / place).write_bytes(content)
        shutil.rmtree(self._path / name, ignore_errors=True)
        unfinished.replace(self._path / name)

    def begin(self) -> None:
        """Remove what a killed build has left, and the sums of the one before."""
        for left in self._path.glob(f"*{_UNFINISHED}"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        (self._path / SUMS).unlink(missing_ok=True)

    def end(self) -> None:
        """Remove files of earlier builds, and write the sums: they say that a build ended."""
        for left in self._path.iterdir():
            if left.is_file() and left.name not in self._sums:
                left.unlink()
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self._sums.items())]
        self._write(SUMS, "".join(lines).encode())

    def _write(self, name: str, content: bytes) -> Path:
        unfinished = self._path / f"{name}{_UNFINISHED}"
        unfinished.write_bytes(content)
        return unfinished.replace(self._path / name)


@contextlib.contextmanager
def filled(path: Path) -> Iterator[Folder]:
    """Fill a folder under a lock; another process waits, and fills it again."""
    path.mkdir(parents=True, exist_ok=True)
    held = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        folder = Folder(path)
        folder.begin()
        yield folder
        folder.end()
    finally:
        os.close(held)
