"""Unpacks tarballs of users into memory: bounded, and with regular files below one folder only.

Nothing is written to a disk, so no link and no path of an archive leads anywhere. File modes,
owners and times do not count.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping

from msgspec import Struct

from bellhop.core.printable import visible
from bellhop.errors import InvalidError, TooLargeError

FOLDER = b"5"
FILE = b"0"

_BLOCK = 512
_OLD_FILE = b"\0"
_LONG_NAME = b"L"
_EXTENDED, _GLOBAL = b"x", b"g"
_OCTAL = re.compile(rb"[ \0]*([0-7]*)[ \0]*")
_RECORD = re.compile(rb"([0-9]{1,9}) ")
_BLANK = b" " * 8


class TarError(Exception):
    """It is no tar file, or a damaged or unsupported one."""


class Member(Struct, frozen=True):
    """A member of an archive; its kind is FILE, FOLDER or another one."""

    name: str
    kind: bytes
    content: bytes = b""


def members(packed: bytes) -> Iterator[Member]:
    """Yield the members of a tar file.

    The time and memory are linear. The formats are those of users' programs: ustar, PAX and GNU's
    long names. Python's `tarfile` takes minutes for some headers, and silently stops at a damaged
    one.

    Raises:
        TarError: it is none.
    """
    at = 0
    named: dict[bytes, bytes] = {}
    while True:
        head = packed[at : at + _BLOCK]
        if not head.strip(b"\0"):
            break
        size = _check_size(head)
        kind = head[156:157]
        size = _number(named.get(b"size", b"")) or size
        content = packed[at + _BLOCK : at + _BLOCK + size]
        if len(content) < size:
            raise TarError
        at += _BLOCK + size + -size % _BLOCK
        if kind == _EXTENDED:
            named |= _records(content)
        elif kind == _LONG_NAME:
            named[b"path"] = content.rstrip(b"\0")
        elif kind != _GLOBAL:
            yield _member(named.get(b"path") or _name(head), kind, content, named)
            named = {}
    if named or at > len(packed) or packed[at:].strip(b"\0"):
        raise TarError


def _check_size(head: bytes) -> int:
    total = sum(head[:148] + _BLANK + head[156:])
    if len(head) < _BLOCK or _octal(head[148:156]) != total:
        raise TarError
    return _octal(head[124:136])


def _octal(field: bytes) -> int:
    found = _OCTAL.fullmatch(field)
    if not found:
        raise TarError
    return int(found[1] or b"0", 8)


def _number(text: bytes) -> int:
    if not re.fullmatch(rb"[0-9]{0,12}", text):
        raise TarError
    return int(text or b"0")


def _name(head: bytes) -> bytes:
    name, _, _ = head[:100].partition(b"\0")
    prefix, _, _ = head[345:500].partition(b"\0")
    # GNU has times where others have the first part of a long name.
    return prefix + b"/" + name if prefix and head[257:263] == b"ustar\0" else name


def _records(content: bytes) -> dict[bytes, bytes]:
    """Read the records of an extended header, each of which begins with its length."""
    found, at = {}, 0
    while at < len(content):
        length = _RECORD.match(content, at)
        end = at + int(length[1]) if length else 0
        if not length or not length.end() < end <= len(content) or content[end - 1] != ord("\n"):
            raise TarError
        key, _, value = content[length.end() : end - 1].partition(b"=")
        found[key] = value
        at = end
    return found


def _member(name: bytes, kind: bytes, content: bytes, named: dict[bytes, bytes]) -> Member:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise TarError from None
    if kind == _OLD_FILE:
        kind = FOLDER if text.endswith("/") else FILE
    if any(key.startswith(b"GNU.sparse") for key in named):
        kind = b"S"
    return Member(text, kind, content)


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
    """Limits of all tarballs together: bytes, members, and folders of a path."""

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
        try:
            for member in members(self._unzip(tarball)):
                self._take(member)
        except InvalidError as error:
            kind = type(error)
            raise kind(f"cannot unpack '{_shorten(name)}': {error}") from error
        except (TarError, OSError, EOFError, zlib.error) as error:
            raise InvalidError(
                f"cannot unpack '{_shorten(name)}': it is not a complete tar.gz; make it with"
                " `tar -czf FILE -C FOLDER .`"
            ) from error

    def _unzip(self, tarball: bytes) -> bytes:
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
                f"'{_shorten(member.name)}' is a {_kind(member)}; only regular files are unpacked"
            )
        if not path:
            raise InvalidError("it has a file without a name")
        if path in self.files:
            raise InvalidError(f"'{_shorten(path)}' is there twice; keep one of them")
        self.files[path] = member.content

    def check_folders(self) -> None:
        """Refuse a file that is another one's folder, too."""
        folders = {
            path[:at] for path in self.files for at, letter in enumerate(path) if letter == "/"
        }
        if both := sorted(folders & self.files.keys()):
            raise InvalidError(f"cannot unpack '{_shorten(both[0])}': it is a file and a folder")


def _path(name: str, depth: int) -> str:
    """Return a member's path below the folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise InvalidError(
            f"'{_shorten(name)}' leads out of the folder; pack relative paths without '..'"
        )
    if len(parts) > depth + 1:
        raise TooLargeError(f"'{_shorten(name)}' is deeper than {depth} folders")
    sizes = [len(part.encode(errors="replace")) for part in parts]
    is_long = max(sizes, default=0) > _LONGEST_NAME or sum(sizes) > _LONGEST_PATH
    if is_long or not name.isprintable():
        raise InvalidError(f"'{_shorten(name)}' is not the name of a file")
    return "/".join(parts)


def _kind(member: Member) -> str:
    if member.kind in _LINKS:
        return "link"
    return "sparse file" if member.kind == _SPARSE else "device"


def _shorten(name: str) -> str:
    return visible(name[:_LONGEST_SHOWN]) + ("…" if len(name) > _LONGEST_SHOWN else "")
