"""Prints the ledger: one block for each event, or line by line as it grows."""

from __future__ import annotations

from datetime import datetime

from bellhop.cli.output import compose, fold, line, styled
from bellhop.core.printable import visible
from bellhop.diagnosis.overview import object_name
from bellhop.diagnosis.timeline import profile_of, row
from bellhop.state.record import Entry

COLOURS = {
    "rang": "cyan",
    "gone": "magenta",
    "matched": "blue",
    "unmatched": "magenta",
    "selected": "blue",
    "rendered": "blue",
    "applied": "green",
    "removed": "yellow",
    "slowed": "yellow",
    "withdrawn": "yellow",
    "held": "yellow",
    "missed": "yellow",
    "warning": "yellow",
    "error": "red",
    "failed": "red",
}
_SHOWN = {"rang": "changed", "gone": "deleted"}
"""How an event is shown; its records keep their words."""

_VERBS = {"rang": " changed", "gone": " was deleted"}
_TRACE = 8
_WHAT = 9
_BELOW = " " * 12
"""Before what a line that is too long goes on with."""


def tell(block: list[Entry]) -> None:
    """Print one event: what rang, then what came of it."""
    first = block[0]
    who = object_name(first.object) or profile_of(first) or "Something"
    place = f" in {first.cluster}" if first.cluster else ""
    heading = f"{who}{_VERBS.get(first.what, '') if first.trace else ''}{place}"
    if not first.trace:
        heading += ", after a resync or a change of manifests"
    trace = f"  {visible(first.trace[:_TRACE])}" if first.trace else ""
    when = styled(_clock(first.at), "bright_black")
    compose(fold(f"{when}{trace}  {styled(heading, 'white', bold=True)}", _BELOW))
    for entry in block:
        if entry is first and entry.what in {"rang", "gone"} and not entry.detail:
            continue
        elsewhere = f"{entry.cluster}: " if entry.cluster not in ("", first.cluster) else ""
        told = visible(f"{elsewhere}{_detail(entry)}")
        compose(fold(f"  {_what(entry)} {told}{_timing(entry)}".rstrip(), _BELOW))


def tell_line(entry: Entry) -> None:
    """Print one line by itself."""
    trace = entry.trace[:_TRACE] or "-" * _TRACE
    who = object_name(entry.object) or profile_of(entry)
    place = f" in {entry.cluster}" if entry.cluster else ""
    detail = f": {_detail(entry)}" if entry.detail else ""
    when = styled(_clock(entry.at), "bright_black")
    told = visible(f"{who}{place}{detail}")
    said = f"{when}  {visible(trace)}  {_what(entry)} {told}{_timing(entry)}"
    compose(fold(said.rstrip(), _BELOW))


def tell_json(entry: Entry) -> None:
    """Print a line as one line of JSON."""
    compose(line(row(entry)))


def _what(entry: Entry) -> str:
    return styled(
        f"{_SHOWN.get(entry.what, entry.what):<{_WHAT}}", COLOURS.get(entry.what, "white")
    )


def _detail(entry: Entry) -> str:
    if entry.detail:
        return entry.detail
    context = entry.context
    return str(context.get("source") or context.get("profile") or "")


def _timing(entry: Entry) -> str:
    since = entry.context.get("since_ring_ms")
    parts = []
    if entry.took_ms:
        parts.append(f"took {entry.took_ms:.1f} ms")
    if since is not None:
        parts.append(f"{since:.0f} ms after the event")
    return styled(f"  ({', '.join(parts)})", "bright_black") if parts else ""


def _clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
