"""The ledger as a timeline: which lines, by event or as they come."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from bellhop.core.generated_names import profile_kind, profile_place
from bellhop.diagnosis.overview import object_name
from bellhop.state.event_log import hours_between
from bellhop.state.record import Entry
from bellhop.state.records import Records

_POLL = 0.2
_OVERLAP = timedelta(seconds=2)
"""A worker notes a line at a time it read a moment before: later lines may be there already."""

_MOST_FOLLOWED = 10_000

_WHOLE = timedelta(seconds=10)
"""How far before the first line that is shown the rest of its event is looked for."""


class Filter(Struct, frozen=True):
    """Which lines; what is empty asks nothing."""

    trace: str = ""
    cluster: str = ""
    source: str = ""

    def takes(self, entry: Entry) -> bool:
        """Say whether a line is asked for."""
        return self.reaches(entry) and self.source in ("", entry.context.get("source"))

    def reaches(self, entry: Entry) -> bool:
        """Say whether a line is asked for, whichever source it follows from."""
        return entry.trace.startswith(self.trace) and self.cluster in ("", entry.cluster)


def lines(
    records: Records, day: str, *, after: str = "", cluster: str = ""
) -> Iterator[tuple[str, Entry]]:
    """Yield a day's (YYYY-MM-DD) lines by time, each with its mark, of one or all clusters."""
    for hour in (f"{day}T{number:02}" for number in range(24)):
        if hour >= after[: len(hour)]:
            yield from _hour(records, hour, after, cluster)


def read(records: Records, since: datetime, cluster: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield the lines since a moment, by time, each with its mark, of one or all clusters."""
    mark = since.isoformat(timespec="microseconds")
    for hour in hours_between(since, records.clock.now()):
        yield from _hour(records, hour, mark, cluster)


def last(
    records: Records, since: datetime, wanted: Filter, limit: int, cluster: str = ""
) -> list[Entry]:
    """Return the last lines since a moment that are asked for, and others of their events.

    What an event has more than a few seconds before the first of them is not looked for.
    """
    found: list[Entry] = []
    chosen: set[tuple[str, str]] = set()
    taken = 0
    mark = since.isoformat(timespec="microseconds")
    for hour in reversed(hours_between(since, records.clock.now())):
        for _, entry in _hour(records, hour, mark, cluster, backwards=True):
            if taken >= limit and entry.at < found[-1].at - _WHOLE:
                return found[::-1]
            if taken < limit and wanted.takes(entry):
                chosen.add(_event(entry))
                taken += 1
            if taken < limit or _event(entry) in chosen:
                found.append(entry)
    return found[::-1]


def tells_of(records: Records, since: datetime, cluster: str) -> bool:
    """Say whether there is a line of a cluster since a moment."""
    hours = hours_between(since, records.clock.now())
    return any(cluster in records.ledger.clusters(hour) for hour in hours)


def _hour(
    records: Records, hour: str, after: str, cluster: str, *, backwards: bool = False
) -> Iterator[tuple[str, Entry]]:
    clusters = [cluster] if cluster else records.ledger.clusters(hour)
    each = (records.ledger.of(one, hour, after, backwards=backwards) for one in clusters)
    return heapq.merge(*each, key=lambda line: line[0], reverse=backwards)


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
        grouped.setdefault(_event(entry), []).append(entry)
    for block in grouped.values():
        if any(wanted.takes(entry) for entry in block):
            yield block


def chosen(entries: Iterable[Entry], wanted: Filter) -> Iterator[Entry]:
    """Yield the lines that are asked for as they come, of a source what follows from it, too."""
    following: dict[str, None] = {}
    for entry in entries:
        if wanted.takes(entry):
            if wanted.source:
                following[entry.trace] = None
            yield entry
        elif entry.trace and entry.trace in following and wanted.reaches(entry):
            yield entry
        if len(following) > _MOST_FOLLOWED:
            del following[next(iter(following))]


def _event(entry: Entry) -> tuple[str, str]:
    if entry.trace:
        return entry.trace, ""
    about = f"{entry.object} {profile_of(entry)}".strip()
    # What is about nothing stands for itself.
    return "", about or f"{entry.at} {entry.cluster} {entry.detail}"


_EVENTS = {"rang": "changed", "gone": "deleted"}
"""Names that users know for entries, where records have another word."""


def row(entry: Entry) -> dict[str, Any]:
    """Return a line for programs; `what` and `sinceRingMs` are former names, for one release."""
    elapsed = entry.context.get("since_ring_ms")
    return {
        "time": entry.at.isoformat(timespec="microseconds"),
        "trace": entry.trace,
        "event": _EVENTS.get(entry.what, entry.what),
        "what": entry.what,
        "cluster": entry.cluster,
        "object": object_name(entry.object),
        "detail": entry.detail,
        "tookMs": entry.took_ms,
        "sinceChangeMs": elapsed,
        "sinceRingMs": elapsed,
        "context": {key: each for key, each in entry.context.items() if key != "since_ring_ms"},
    }


def beginning(records: Records, ago: timedelta) -> datetime:
    """Return the moment a while ago."""
    return (records.clock.now() - ago).astimezone(UTC)


def profile_of(entry: Entry) -> str:
    """Name the profile that a line is about, if any."""
    profile = entry.context.get("profile")
    return f"{profile_kind(profile)} {profile_place(profile)}" if profile else ""
