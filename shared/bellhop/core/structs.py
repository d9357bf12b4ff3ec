"""Structs that are read from JSON values by several threads at once, and structs with secrets.

msgspec finds out how to read a class when the first thread reads one, and shows other threads an
unfinished result: two threads that read a class first at once crash the process (0.22). So the
first reading of each class has a lock. Nobody else calls `convert`: the linter forbids it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar

from msgspec import Struct, convert  # noqa: TID251 - this is the one place
from msgspec.json import Decoder, decode  # noqa: TID251

R = TypeVar("R", bound=Struct)

_lock = threading.Lock()
_known: set[type[Struct]] = set()


def read_struct(value: Mapping[str, Any], kind: type[R]) -> R:
    """Read a struct from a JSON value; a field that it does not have is passed over.

    Raises:
        msgspec.ValidationError: a field without a default is missing, or is of another type.
    """
    _learn(kind)
    return convert(value, kind)


def decode_struct(text: bytes, kind: type[R]) -> R:
    """Read a struct from JSON, of which nothing is built that the struct does not have.

    Raises:
        msgspec.DecodeError: it is not JSON, or is of another type.
    """
    _learn(kind)
    return decode(text, type=kind)


def _learn(kind: type[Struct]) -> None:
    if kind not in _known:
        with _lock:
            Decoder(kind)
            _known.add(kind)


class Redacted(Struct, frozen=True):
    """Shows all of its fields but the `secret_fields`."""

    secret_fields: ClassVar[Collection[str]] = ()

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if name not in self.secret_fields]
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"
