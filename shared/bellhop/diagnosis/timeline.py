"""The event log as a timeline, by event or by time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from bellhop.core.identity import profile_kind, profile_place
from bellhop.diagnosis.names import object_name
from bellhop.state.event_log import Entry, hours_between
from bellhop.state.records import Records

_POLL = 0.2
_OVERLAP = timedelta(seconds=2)
"""A worker notes a line at a time it read a moment before: later lines may be there already."""

_MAX_FOLLOWED = 10_000

_EVENT_SPAN = timedelta(seconds=10)
"""Time before the first selected entry in which entries of its event are read."""


class Filter(Struct, frozen=True):
    """Selects entries of the event log; an empty field selects all."""

    trace: str = ""
    cluster: str = ""
    source: str = ""

    def takes(self, entry: Entry) -> bool:
        return self.reaches(entry) and self.source in ("", entry.context.get("source"))

    def reaches(self, entry: Entry) -> bool:
        """Return whether an entry is selected, regardless of its source."""
        return entry.trace.startswith(self.trace) and self.cluster in ("", entry.cluster)


def read_day(
    records: Records, day: str, *, after: str = "", cluster: str = ""
) -> Iterator[tuple[str, Entry]]:
    """Yield (key, entry) of a day (YYYY-MM-DD) in order, of one or all clusters."""
    for hour in (f"{day}T{number:02}" for number in range(24)):
        if hour >= after[: len(hour)]:
            yield from _read_hour(records, hour, after, cluster)


def read_since(records: Records, since: datetime, cluster: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield (key, entry) since a moment in order, of one or all clusters."""
    mark = since.isoformat(timespec="microseconds")
    for hour in hours_between(since, records.clock.now()):
        yield from _read_hour(records, hour, mark, cluster)


def read_last(
    records: Records, since: datetime, criteria: Filter, limit: int, cluster: str = ""
) -> list[Entry]:
    """Return the last selected entries since a moment, and other entries of their events.

    Entries more than a few seconds before the first selected one are left out.
    """
    found: list[Entry] = []
    chosen: set[tuple[str, str]] = set()
    taken = 0
    mark = since.isoformat(timespec="microseconds")
    for hour in reversed(hours_between(since, records.clock.now())):
        for _, entry in _read_hour(records, hour, mark, cluster, backwards=True):
            if taken >= limit and entry.at < found[-1].at - _EVENT_SPAN:
                return found[::-1]
            if taken < limit and criteria.takes(entry):
                chosen.add(_event_key(entry))
                taken += 1
            if taken < limit or _event_key(entry) in chosen:
                found.append(entry)
    return found[::-1]


def has_entries(records: Records, since: datetime, cluster: str) -> bool:
    hours = hours_between(since, records.clock.now())
    return any(cluster in records.ledger.clusters(hour) for hour in hours)


def _read_hour(
    records: Records, hour: str, after: str, cluster: str, *, backwards: bool = False
) -> Iterator[tuple[str, Entry]]:
    clusters = [cluster] if cluster else records.ledger.clusters(hour)
    each = (records.ledger.of(one, hour, after, backwards=backwards) for one in clusters)
    return heapq.merge(*each, key=lambda line: line[0], reverse=backwards)


def follow(records: Records, since: datetime, cluster: str = "") -> Iterator[Entry]:
    """Yield entries since a moment, and new ones without end."""
    seen: dict[str, datetime] = {}
    while True:
        for mark, entry in read_since(records, since, cluster):
            if mark not in seen:
                seen[mark] = entry.at
                yield entry
        newest = max(seen.values(), default=since)
        since = max(since, newest - _OVERLAP)
        seen = {mark: at for mark, at in seen.items() if at >= since}
        time.sleep(_POLL)


def group_entries(entries: Iterable[Entry], criteria: Filter) -> Iterator[list[Entry]]:
    """Group entries by their event; yield the groups with a selected entry.

    Entries without an event, of resyncs and applied manifests, are grouped by object.
    """
    grouped: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        grouped.setdefault(_event_key(entry), []).append(entry)
    for block in grouped.values():
        if any(criteria.takes(entry) for entry in block):
            yield block


def select_entries(entries: Iterable[Entry], criteria: Filter) -> Iterator[Entry]:
    """Yield the selected entries, and those that follow from entries of a selected source."""
    following: dict[str, None] = {}
    for entry in entries:
        if criteria.takes(entry):
            if criteria.source:
                following[entry.trace] = None
            yield entry
        elif entry.trace and entry.trace in following and criteria.reaches(entry):
            yield entry
        if len(following) > _MAX_FOLLOWED:
            del following[next(iter(following))]


def _event_key(entry: Entry) -> tuple[str, str]:
    if entry.trace:
        return entry.trace, ""
    about = f"{entry.object} {format_profile(entry)}".strip()
    # An entry about nothing is a group by itself.
    return "", about or f"{entry.at} {entry.cluster} {entry.detail}"


_EVENTS = {"rang": "changed", "gone": "deleted"}
"""Names that users know for entries, where records have another word."""


def make_row(entry: Entry) -> dict[str, Any]:
    """Return an entry for programs; `what` and `sinceRingMs` are former names, for one release."""
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


def find_start(records: Records, ago: timedelta) -> datetime:
    return (records.clock.now() - ago).astimezone(UTC)


def format_profile(entry: Entry) -> str:
    """Return the profile of a line, or the promotion; empty if it has none."""
    if promotion := entry.context.get("promotion"):
        return f"ClusterPromotion {promotion}"
    profile = entry.context.get("profile")
    return f"{profile_kind(profile)} {profile_place(profile)}" if profile else ""
