"""Log lines of functions as entries: decisions as in the event log, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from bellhop.adapters.gcp.logs import CloudLogs
from bellhop.adapters.gcp.services import Services
from bellhop.core.log_tail import Line
from bellhop.runtime.cloud.event_log import read_line, trouble
from bellhop.state.event_log import Entry

_QUIET = frozenset({"DEFAULT", "DEBUG", "INFO", "NOTICE"})


class Journal:
    """Lines of functions: decisions and errors."""

    def __init__(self, services: Services, place: str, functions: Mapping[str, str]) -> None:
        self._logs = CloudLogs(services, place, functions)

    def read(self, since: datetime) -> Iterable[Entry]:
        """Return the lines since a moment, by time."""
        return _entries(self._logs.read(since))

    def follow(self, since: datetime, *, wait: Callable[[str], None]) -> Iterator[Entry]:
        """Yield lines since a moment, and later ones; `wait` gets the reason if none can come."""
        yield from _entries(self._logs.follow(since, wait=wait))


def _entries(lines: Iterable[Line]) -> Iterator[Entry]:
    for line in lines:
        entry = entry_of(json.loads(line.text), line.at, line.stage)
        if entry is not None:
            yield entry


def entry_of(logged: Mapping[str, Any], at: datetime, stage: str) -> Entry | None:
    """Read an entry of Cloud Logging; None if it is neither a decision nor an error.

    Cloud Run itself writes text about a function that it ended.
    """
    severity = str(logged.get("severity") or "DEFAULT")
    payload = logged.get("jsonPayload")
    if isinstance(payload, dict):
        line = {"severity": severity, "message": "", **payload, "time": logged["timestamp"]}
        return (
            None if severity in _QUIET and not payload.get("what") else read_line(line, at, stage)
        )
    text = str(logged.get("textPayload") or "").strip()
    if severity in _QUIET or not text:
        return None
    return trouble(at, stage, "warning" if severity == "WARNING" else "error", text)
