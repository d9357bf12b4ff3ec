"""The ledger as people read it: one block for each event, or line by line as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from bellhop.cli.output import line, styled
from bellhop.cli.survey import object_name
from bellhop.model.record import Entry
from bellhop.records import Records

COLOURS = {
    "rang": "cyan",
    "gone": "magenta",
    "matched": "blue",
    "unmatched": "magenta",
    "rendered": "blue",
    "applied": "green",
    "removed": "yellow",
    "withdrawn": "yellow",
    "held": "yellow",
    "failed": "red",
}
_POLL = 0.2
_OVERLAP = timedelta(seconds=2)
"""A worker notes a line at a time it read a moment before: later lines may be there already."""

_VERBS = {"rang": " rang", "gone": " went"}
_TRACE = 8
_WHAT = 9


@dataclass(frozen=True)
class Filter:
    """Which lines; what is empty asks nothing."""

    trace: str = ""
    cluster: str = ""

    def takes(self, entry: Entry) -> bool:
        """Say whether a line is asked for."""
        return entry.trace.startswith(self.trace) and self.cluster in ("", entry.cluster)


def read(records: Records, since: datetime) -> Iterator[tuple[str, Entry]]:
    """Yield the lines since a moment, by time, each with its mark."""
    day, today = since.date(), records.clock.now().date()
    mark = since.isoformat(timespec="microseconds")
    while day <= today:
        yield from records.ledger(day.isoformat(), after=mark)
        day += timedelta(days=1)


def follow(records: Records, since: datetime) -> Iterator[Entry]:
    """Yield the lines since a moment, and every one that comes, for ever."""
    told: dict[str, datetime] = {}
    while True:
        for mark, entry in read(records, since):
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
        key = (entry.trace, "") if entry.trace else ("", f"{entry.object} {_profile(entry)}")
        grouped.setdefault(key, []).append(entry)
    for block in grouped.values():
        if any(wanted.takes(entry) for entry in block):
            yield block


def tell(block: list[Entry]) -> None:
    """Print one event: what rang, then what came of it."""
    first = block[0]
    who = object_name(first.object) or _profile(first) or "Something"
    place = f" in {first.cluster}" if first.cluster else ""
    heading = f"{who}{_VERBS.get(first.what, '') if first.trace else ''}{place}"
    if not first.trace:
        heading += ", by a sweep or a declaration"
    trace = f"  {first.trace[:_TRACE]}" if first.trace else ""
    when = styled(_clock(first.at), "bright_black")
    click.echo(f"{when}{trace}  {styled(heading, 'white', bold=True)}")
    for entry in block:
        if entry is first and entry.what in {"rang", "gone"} and not entry.detail:
            continue
        elsewhere = f"{entry.cluster}: " if entry.cluster not in ("", first.cluster) else ""
        click.echo(f"  {_what(entry)} {elsewhere}{_detail(entry)}{_timing(entry)}".rstrip())


def tell_line(entry: Entry) -> None:
    """Print one line by itself."""
    trace = entry.trace[:_TRACE] or "-" * _TRACE
    who = object_name(entry.object) or _profile(entry)
    place = f" in {entry.cluster}" if entry.cluster else ""
    detail = f": {_detail(entry)}" if entry.detail else ""
    when = styled(_clock(entry.at), "bright_black")
    click.echo(f"{when}  {trace}  {_what(entry)} {who}{place}{detail}{_timing(entry)}".rstrip())


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


def tell_json(entry: Entry) -> None:
    """Print a line as one line of JSON."""
    click.echo(line(row(entry)))


def beginning(records: Records, ago: timedelta) -> datetime:
    """Return the moment a while ago."""
    return (records.clock.now() - ago).astimezone(UTC)


def _what(entry: Entry) -> str:
    return styled(f"{entry.what:<{_WHAT}}", COLOURS.get(entry.what, "white"))


def _detail(entry: Entry) -> str:
    if entry.detail:
        return entry.detail
    context = entry.context
    return str(context.get("source") or context.get("profile") or "")


def _profile(entry: Entry) -> str:
    profile = entry.context.get("profile")
    return f"ClusterProfile {profile}" if profile else ""


def _timing(entry: Entry) -> str:
    since = entry.context.get("since_ring_ms")
    parts = []
    if entry.took_ms:
        parts.append(f"took {entry.took_ms:.1f} ms")
    if since is not None:
        parts.append(f"{since:.0f} ms after the ring")
    return styled(f"  ({', '.join(parts)})", "bright_black") if parts else ""


def _clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
