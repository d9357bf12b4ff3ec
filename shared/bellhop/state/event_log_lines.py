"""The ledger's lines of one second in one item, compressed: an event's lines repeat each other.

A line is `[MICROSECONDS, trace, what, object, detail, took, context]`; what it lacks at its end is
as a new line has it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bellhop.errors import InvalidError
from bellhop.state.record import Entry
from bellhop.state.sealer import as_bytes, as_text

_LACKING: tuple[Any, ...] = ("", 0.0, {})
_LEVEL = 1
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=dict).encode


def write_lines(entries: Sequence[Entry]) -> dict[str, Any]:
    """Write lines of one second of a cluster as an item's value.

    Raises:
        InvalidError: one cannot be written as JSON.
    """
    try:
        text = _encode([_line(entry) for entry in entries])
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError("cannot write lines of the event log: they are not JSON") from error
    return {"lines": as_text(zlib.compress(text.encode(), _LEVEL))}


def read_lines(value: Mapping[str, Any], second: datetime, cluster: str) -> Iterator[Entry]:
    """Read what `write_lines` wrote of a second of a cluster."""
    for microseconds, trace, what, key, *rest in json.loads(
        zlib.decompress(as_bytes(value["lines"]))
    ):
        at = second + timedelta(microseconds=microseconds)
        yield Entry(at, trace, what, cluster, key, *rest[: len(_LACKING)])


def _line(entry: Entry) -> list[Any]:
    rest = [entry.detail, entry.took_ms, entry.context]
    while rest and rest[-1] == _LACKING[len(rest) - 1]:
        rest.pop()
    return [entry.at.microsecond, entry.trace, entry.what, entry.object, *rest]
