"""Structs that are read from JSON values, by several threads at once.

msgspec finds out how a class is read when the first thread reads one, and shows other threads what
it has found so far: two threads that read a class first at once crash the process (0.22). So the
first reading of each class has a lock. Nobody else calls `convert`: the linter holds that.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, TypeVar

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
