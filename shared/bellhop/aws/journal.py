"""What functions have logged, as entries: decisions as the ledger has them, and troubles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from bellhop.adapters.aws.logs import CloudWatchLogs, Line
from bellhop.adapters.aws.services import Services
from bellhop.aws.told import entry_of
from bellhop.model.record import Entry


class Journal:
    """The lines of log groups, by stage, that tell something."""

    def __init__(self, services: Services, groups: Mapping[str, str]) -> None:
        self._logs = CloudWatchLogs(services, groups)

    def read(self, since: datetime) -> Iterable[Entry]:
        """Return the lines since a moment, by time."""
        return _entries(self._logs.read(since))

    def follow(self, since: datetime, *, wait: Callable[[str], None]) -> Iterator[Entry]:
        """Yield the lines since a moment, and each that comes; `wait` is told why none comes."""
        yield from _entries(self._logs.follow(since, wait=wait))


def _entries(lines: Iterable[Line]) -> Iterator[Entry]:
    for line in lines:
        entry = entry_of(line.text, line.at, line.stage)
        if entry is not None:
            yield entry
