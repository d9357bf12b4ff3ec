"""Log lines of functions as entries: decisions as in the event log, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from bellhop.adapters.aws.logs import CloudWatchLogs
from bellhop.adapters.aws.services import Services
from bellhop.core.log_tail import Line
from bellhop.runtime.cloud.event_log import read_line, trouble
from bellhop.state.event_log import Entry

_LAMBDAS = ("START ", "END ", "REPORT ", "INIT_START ", "INIT_REPORT ", "EXTENSION")
_WELL = ("", "success")


class Journal:
    """Lines of log groups, by stage: decisions and errors."""

    def __init__(self, services: Services, groups: Mapping[str, str]) -> None:
        self._logs = CloudWatchLogs(services, groups)

    def read(self, since: datetime) -> Iterable[Entry]:
        """Return the lines since a moment, by time."""
        return _entries(self._logs.read(since))

    def follow(self, since: datetime, *, wait: Callable[[str], None]) -> Iterator[Entry]:
        """Yield lines since a moment, and later ones; `wait` gets the reason if none can come."""
        yield from _entries(self._logs.follow(since, wait=wait))


def _entries(lines: Iterable[Line]) -> Iterator[Entry]:
    for line in lines:
        entry = entry_of(line.text, line.at, line.stage)
        if entry is not None:
            yield entry


def entry_of(text: str, at: datetime, stage: str) -> Entry | None:
    """Read a function's line as an entry; None if it is neither a decision nor an error.

    A line of Lambda itself about a function that it ended is an error.
    """
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        return None if text.startswith(_LAMBDAS) else trouble(at, stage, "error", text.strip())
    record = line.get("record")
    if isinstance(record, dict):
        status = str(record.get("status") or "")
        return None if status in _WELL else trouble(at, stage, "error", f"it ended by {status}")
    if "severity" not in line and not line.get("what"):
        # As Lambda writes what a handler raised.
        said = line.get("errorMessage") or line.get("message") or text
        return trouble(at, stage, "error", str(said))
    return read_line(line, at, stage)
