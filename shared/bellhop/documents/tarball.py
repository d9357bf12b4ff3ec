"""Unpacks tarballs of users into memory: bounded, and with regular files below one folder only.

Nothing is written to a disk, so no link and no path of an archive leads anywhere. File modes,
owners and times do not count.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping

from msgspec import Struct

from bellhop.core.printable import visible
from bellhop.documents.tar import FILE, FOLDER, Member, TarError, members
from bellhop.errors import InvalidError, TooLargeError

Folder = Mapping[str, bytes]
"""Files by their paths, as `base/web.yaml`: relative, without `.` and `..`, and no file is the
folder of another one."""

_PIECE = 1 << 16
_LONGEST_NAME = 255
_LONGEST_PATH = 1024
_LONGEST_SHOWN = 120
_LINKS = (b"1", b"2")
_SPARSE = b"S"


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
            for member in members(self._unzipped(tarball)):
                self._take(member)
        except InvalidError as error:
            kind = type(error)
            raise kind(f"cannot unpack '{_shown(name)}': {error}") from error
        except (TarError, OSError, EOFError, zlib.error) as error:
            raise InvalidError(
                f"cannot unpack '{_shown(name)}': it is not a complete tar.gz; make it with"
                " `tar -czf FILE -C FOLDER .`"
            ) from error

    def _unzipped(self, tarball: bytes) -> bytes:
        """Unzip a tarball whole: at its end gzip checks whether all of it came as it was."""
        pieces: list[bytes] = []
        with gzip.open(io.BytesIO(tarball)) as unzipped:
            while piece := unzipped.read(_PIECE):
                self.bytes -= len(piece)
                if self.bytes < 0:
                    most = self.bounds.unpacked
                    raise TooLargeError(f"it has more than the {most:,} bytes that are unpacked")
                pieces.append(piece)
        if not pieces:
            raise TarError
        return b"".join(pieces)

    def _take(self, member: Member) -> None:
        """Keep a regular file."""
        self.members -= 1
        if self.members < 0:
            raise TooLargeError(
                f"it has more than the {self.bounds.members:,} members that are unpacked"
            )
        path = _path(member.name, self.bounds.depth)
        if member.kind == FOLDER:
            return
        if member.kind != FILE:
            raise InvalidError(
                f"'{_shown(member.name)}' is a {_kind(member)}; only regular files are unpacked"
            )
        if not path:
            raise InvalidError("it has a file without a name")
        if path in self.files:
            raise InvalidError(f"'{_shown(path)}' is there twice; keep one of them")
        self.files[path] = member.content

    def check_folders(self) -> None:
        """Refuse a file that is another one's folder, too."""
        folders = {
            path[:at] for path in self.files for at, letter in enumerate(path) if letter == "/"
        }
        if both := sorted(folders & self.files.keys()):
            raise InvalidError(f"cannot unpack '{_shown(both[0])}': it is a file and a folder")


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
        raise InvalidError(f"'{_shown(name)}' is not the name of a file")
    return "/".join(parts)


def _kind(member: Member) -> str:
    if member.kind in _LINKS:
        return "link"
    return "sparse file" if member.kind == _SPARSE else "device"


def _shown(name: str) -> str:
    return visible(name[:_LONGEST_SHOWN]) + ("…" if len(name) > _LONGEST_SHOWN else "")
