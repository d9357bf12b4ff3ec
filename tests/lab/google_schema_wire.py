"""The two encodings that Terraform and a provider speak, as far as the stand-in for Google's needs.

Messages between them are protobuf, whose fields go by numbers. In them the configuration of a
resource is MessagePack, in which what nobody knows before the apply is UNKNOWN.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

UNKNOWN = object()
"""Stands for a value that Terraform will know only when it applies."""

_TEXT = 2
_KIND = 0b111
_MORE = 0x80

# What the first byte of a value in MessagePack says: the value itself, how long it is, or how its
# length or the number is written.
_CONSTANTS: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
_CONSTANTS |= {each % 0x100: each for each in range(-0x20, 0x80)}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
_NUMBERS |= {0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_MAPS: dict[int, int | str] = {0xDE: ">H", 0xDF: ">I"}
_MAPS |= {0x80 + length: length for length in range(16)}
_LISTS: dict[int, int | str] = {0xDC: ">H", 0xDD: ">I"}
_LISTS |= {0x90 + length: length for length in range(16)}
_TEXTS: dict[int, int | str] = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_TEXTS |= {0xA0 + length: length for length in range(32)}
_EXTENSIONS: dict[int, int | str] = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}
_EXTENSIONS |= {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def field(number: int, value: int | str | bytes) -> bytes:
    """Write a field of a message; one that is 0 or false is left out, as protobuf has it."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value) if value else b""
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _TEXT) + _varint(len(data)) + data


def texts(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a message that are texts or messages themselves, by their numbers."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        length, at = _read_varint(message, at)
        if key & _KIND == _TEXT:
            yield key >> 3, message[at : at + length]
            at += length


def unpacked(packed: bytes) -> Any:
    """Read a value in MessagePack."""
    return _Reader(packed).value()


class _Reader:
    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._at = 0

    def value(self) -> Any:
        kind = self._number(">B")
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind in _TEXTS:
            return self._take(self._length(_TEXTS[kind])).decode()
        if kind in _LISTS:
            return [self.value() for _ in range(self._length(_LISTS[kind]))]
        if kind in _MAPS:
            return {self.value(): self.value() for _ in range(self._length(_MAPS[kind]))}
        # Terraform writes nothing else that is an extension; before what is in it stands its type.
        self._take(self._length(_EXTENSIONS[kind]) + 1)
        return UNKNOWN

    def _length(self, said: int | str) -> int:
        return said if isinstance(said, int) else int(self._number(said))

    def _number(self, shape: str) -> Any:
        return struct.unpack(shape, self._take(struct.calcsize(shape)))[0]

    def _take(self, length: int) -> bytes:
        self._at += length
        return self._packed[self._at - length : self._at]


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= _MORE:
        written.append(value % _MORE | _MORE)
        value //= _MORE
    return bytes([*written, value])


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value, place = 0, 1
    while True:
        value += message[at] % _MORE * place
        place *= _MORE
        at += 1
        if message[at - 1] < _MORE:
            return value, at
