"""A strict reader of untrusted tar files, in linear time and memory.

It supports the formats of what users pack: ustar, PAX and GNU's long names. Python's `tarfile`
takes minutes for some headers, and silently stops at a damaged one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

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

    Raises:
        TarError: it is none.
    """
    at = 0
    named: dict[bytes, bytes] = {}
    while True:
        head = packed[at : at + _BLOCK]
        if not head.strip(b"\0"):
            break
        size = _checked_size(head)
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


def _checked_size(head: bytes) -> int:
    """Check the sum of a header and return the size in it."""
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
