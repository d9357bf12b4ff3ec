"""The ledger as a timeline: which lines, by event or as they come."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bellhop.fleet.overview import object_name
from bellhop.model.record import Entry
from bellhop.records import Records

_POLL = 0.2
_OVERLAP = timedelta(seconds=2)
"""A worker notes a line at a time it read a moment before: later lines may be there already."""


@dataclass(frozen=True)
class Filter:
    """Which lines; what is empty asks nothing."""

    trace: str = ""
    cluster: str = ""

    def takes(self, entry: Entry) -> bool:
        """Say whether a line is asked for."""
        return entry.trace.startswith(self.trace) and self.cluster in ("", entry.cluster)


def lines(
    records: Records, day: str, *, after: str = "", cluster: str = ""
) -> Iterator[tuple[str, Entry]]:
    """Yield a day's (YYYY-MM-DD) lines by time, each with its mark, of one or all clusters."""
    clusters = [cluster] if cluster else records.ledger.clusters(day)
    each = (records.ledger.of(one, day, after) for one in clusters)
    return heapq.merge(*each, key=lambda line: line[0])


def read(records: Records, since: datetime, cluster: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield the lines since a moment, by time, each with its mark, of one or all clusters."""
    day, today = since.date(), records.clock.now().date()
    mark = since.isoformat(timespec="microseconds")
    while day <= today:
        yield from lines(records, day.isoformat(), after=mark, cluster=cluster)
        day += timedelta(days=1)


def follow(records: Records, since: datetime, cluster: str = "") -> Iterator[Entry]:
    """Yield the lines since a moment, and every one that comes, for ever."""
    told: dict[str, datetime] = {}
    while True:
        for mark, entry in read(records, since, cluster):
            if mark not in told:
                told[mark] = entry.at
                yield entry
        newest = max(told.values(), default=since)
        since = max(since, newest - _OVERLAP)
        told = {mark: at for mark, at in told.items() if at >= since}
        time.sleep(_POLL)


def blocks(entries: Iterable[Entry], wanted: Filter) -> Iterator[list[Entry]]:
    """Group lines by their event; a block counts if one of its lines is asked for.

    What no ring caused, sweeps and declarations, is grouped by the object concerned.
    """
    grouped: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        key = (entry.trace, "") if entry.trace else ("", f"{entry.object} {profile_of(entry)}")
        grouped.setdefault(key, []).append(entry)
    for block in grouped.values():
        if any(wanted.takes(entry) for entry in block):
            yield block


def row(entry: Entry) -> dict[str, Any]:
    """Return a line for programs."""
    return {
        "time": entry.at.isoformat(timespec="microseconds"),
        "trace": entry.trace,
        "what": entry.what,
        "cluster": entry.cluster,
        "object": object_name(entry.object),
        "detail": entry.detail,
        "tookMs": entry.took_ms,
        "sinceRingMs": entry.context.get("since_ring_ms"),
        "context": {key: each for key, each in entry.context.items() if key != "since_ring_ms"},
    }


def beginning(records: Records, ago: timedelta) -> datetime:
    """Return the moment a while ago."""
    return (records.clock.now() - ago).astimezone(UTC)


def profile_of(entry: Entry) -> str:
    """Name the profile that a line is about, if any."""
    profile = entry.context.get("profile")
    return f"ClusterProfile {profile}" if profile else ""
