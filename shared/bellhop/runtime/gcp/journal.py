"""What functions have logged, as entries: decisions as the ledger has them, and troubles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from bellhop.adapters.gcp.logs import CloudLogs
from bellhop.adapters.gcp.services import Services
from bellhop.core.log_tail import Line
from bellhop.runtime.cloud.event_log import read_line, trouble
from bellhop.state.record import Entry

_QUIET = frozenset({"DEFAULT", "DEBUG", "INFO", "NOTICE"})


class Journal:
    """The lines of functions that tell something."""

    def __init__(self, services: Services, place: str, functions: Mapping[str, str]) -> None:
        self._logs = CloudLogs(services, place, functions)

    def read(self, since: datetime) -> Iterable[Entry]:
        """Return the lines since a moment, by time."""
        return _entries(self._logs.read(since))

    def follow(self, since: datetime, *, wait: Callable[[str], None]) -> Iterator[Entry]:
        """Yield the lines since a moment, and each that comes; `wait` is told why none comes."""
        yield from _entries(self._logs.follow(since, wait=wait))


def _entries(lines: Iterable[Line]) -> Iterator[Entry]:
    for line in lines:
        entry = entry_of(json.loads(line.text), line.at, line.stage)
        if entry is not None:
            yield entry


def entry_of(told: Mapping[str, Any], at: datetime, stage: str) -> Entry | None:
    """Read an entry of Cloud Logging's; None for what tells of no decision and no trouble.

    What Cloud Run itself says of a function that was ended is text.
    """
    severity = str(told.get("severity") or "DEFAULT")
    payload = told.get("jsonPayload")
    if isinstance(payload, dict):
        line = {"severity": severity, "message": "", **payload, "time": told["timestamp"]}
        return (
            None if severity in _QUIET and not payload.get("what") else read_line(line, at, stage)
        )
    text = str(told.get("textPayload") or "").strip()
    if severity in _QUIET or not text:
        return None
    return trouble(at, stage, "warning" if severity == "WARNING" else "error", text)
