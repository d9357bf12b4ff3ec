"""Unpacks tarballs of users into memory: bounded, and with regular files below one folder only.

Nothing is written to a disk, so no link and no path of an archive leads anywhere. File modes,
owners and times do not count.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping

from msgspec import Struct

from bellhop.errors import InvalidError, TooLargeError
from bellhop.model.visible import visible

Folder = Mapping[str, bytes]
"""Files by their paths, as `base/web.yaml`: relative, without `.` and `..`, and no file is the
folder of another one."""

_PIECE = 1 << 16
_LONGEST_NAME = 255
_LONGEST_PATH = 1024
_LONGEST_SHOWN = 120
_UNREADABLE = (
    *(tarfile.TarError, OSError, EOFError, zlib.error),
    *(ValueError, OverflowError, RecursionError),
)
"""What tarfile and gzip raise for bytes that they cannot read."""


class Bounds(Struct, frozen=True):
    """What all tarballs may have together, in bytes, in members, and in folders of a path."""

    packed: int = 16 << 20
    unpacked: int = 32 << 20
    members: int = 10_000
    depth: int = 32


USUAL = Bounds()


def unpack(tarballs: Mapping[str, bytes], bounds: Bounds = USUAL) -> Folder:
    """Return the files of tar.gz archives in one folder, in the order of the archives' names.

    Raises:
        InvalidError: one is no tar.gz, or has a link, a device, a path that leads out, or a path
            that there is already.
        TooLargeError: they have more than is unpacked.
    """
    packed = sum(map(len, tarballs.values()))
    if packed > bounds.packed:
        raise TooLargeError(
            f"cannot unpack {packed:,} bytes of tar.gz: at most {bounds.packed:,} are unpacked"
        )
    unpacking = _Unpacking(bounds)
    for name in sorted(tarballs):
        unpacking.add(name, tarballs[name])
    unpacking.check_folders()
    return unpacking.files


class _Unpacking:
    """The files that were unpacked so far, and how many bytes and members may still come."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.files: dict[str, bytes] = {}
        self.bytes = bounds.unpacked
        self.members = bounds.members

    def add(self, name: str, tarball: bytes) -> None:
        """Unpack one tarball."""
        try:
            with gzip.open(io.BytesIO(tarball)) as unzipped:
                stream = _Bounded(unzipped, self)
                # Read as a stream, it is unzipped no further than tarfile has got.
                with tarfile.open(fileobj=stream, mode="r|", bufsize=_PIECE) as archive:
                    for member in self._members(archive):
                        self._take(archive, member)
                while stream.read(_PIECE):
                    pass  # At its end gzip checks whether all of it came.
        except InvalidError as error:
            kind = type(error)
            raise kind(f"cannot unpack '{_shown(name)}': {error}") from error
        except _UNREADABLE as error:
            raise InvalidError(
                f"cannot unpack '{_shown(name)}': it is no whole tar.gz; make it with"
                " `tar -czf FILE -C FOLDER .`"
            ) from error

    def _members(self, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        for member in archive:
            self.members -= 1
            if self.members < 0:
                raise TooLargeError(
                    f"it has more than the {self.bounds.members:,} members that are unpacked"
                )
            yield member

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Keep a regular file."""
        path = _path(member.name, self.bounds.depth)
        if member.isdir():
            return
        if not member.isreg() or member.issparse():
            raise InvalidError(
                f"'{_shown(member.name)}' is a {_kind(member)}; only regular files are unpacked"
            )
        if not path:
            raise InvalidError("it has a file without a name")
        if path in self.files:
            raise InvalidError(f"'{_shown(path)}' is there twice; keep one of them")
        file = archive.extractfile(member)
        assert file
        self.files[path] = file.read()

    def check_folders(self) -> None:
        """Refuse a file that is another one's folder, too."""
        folders = {
            path[:at] for path in self.files for at, letter in enumerate(path) if letter == "/"
        }
        if both := sorted(folders & self.files.keys()):
            raise InvalidError(f"cannot unpack '{_shown(both[0])}': it is a file and a folder")


class _Bounded(io.RawIOBase):
    """What is unzipped, until all tarballs together are beyond the bound."""

    def __init__(self, unzipped: gzip.GzipFile, unpacking: _Unpacking) -> None:
        self._unzipped = unzipped
        self._unpacking = unpacking

    def read(self, size: int = _PIECE) -> bytes:
        """Read the next bytes."""
        piece = self._unzipped.read(min(size, _PIECE))
        self._unpacking.bytes -= len(piece)
        if self._unpacking.bytes < 0:
            most = self._unpacking.bounds.unpacked
            raise TooLargeError(f"it has more than the {most:,} bytes that are unpacked")
        return piece


def _path(name: str, depth: int) -> str:
    """Return a member's path below the folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise InvalidError(
            f"'{_shown(name)}' leads out of the folder; pack relative paths without '..'"
        )
    if len(parts) > depth + 1:
        raise TooLargeError(f"'{_shown(name)}' is deeper than {depth} folders")
    sizes = [len(part.encode(errors="replace")) for part in parts]
    is_long = max(sizes, default=0) > _LONGEST_NAME or sum(sizes) > _LONGEST_PATH
    if is_long or not name.isprintable():
        raise InvalidError(f"'{_shown(name)}' is no name of a file")
    return "/".join(parts)


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "link"
    return "sparse file" if member.issparse() else "device"


def _shown(name: str) -> str:
    return visible(name[:_LONGEST_SHOWN]) + ("…" if len(name) > _LONGEST_SHOWN else "")
