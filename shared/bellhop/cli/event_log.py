"""The event log as commands print it: a block for each event, single lines, or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bellhop.cli import output
from bellhop.cli.options import JSON, TABLE, YAML, read_duration
from bellhop.cli.output import format_json_line, print_styled, say, style, wrap
from bellhop.cli.selection import find_cluster
from bellhop.core.printable import visible
from bellhop.diagnosis import timeline
from bellhop.diagnosis.names import object_name
from bellhop.diagnosis.timeline import format_profile, make_row
from bellhop.errors import MissingError
from bellhop.installation import Installation
from bellhop.state.event_log import Entry


def show_events(  # noqa: PLR0913 - one parameter an option of the command
    here: Installation,
    *,
    since: str | None,
    trace: str,
    namespace: str,
    cluster: str,
    limit: int,
    form: str,
    follow: bool,
) -> None:
    """Print events, oldest first; with `follow` also those that come."""
    ago = read_duration(since) if since else timedelta(hours=0 if follow else 1)
    begin = timeline.find_start(here.records, ago)
    cluster = _find_cluster(here, cluster, namespace, begin)
    selected = timeline.Filter(trace, cluster)
    if follow:
        follow_entries(filter(selected.takes, timeline.follow(here.records, begin, cluster)), form)
        return
    # A block is printed in full, even if its event went from one cluster to another.
    one = "" if form == TABLE else cluster
    entries: Iterable[Entry]
    if limit:
        entries = timeline.read_last(here.records, begin, selected, limit, one)
        if form != TABLE:
            entries = [entry for entry in entries if selected.takes(entry)][-limit:]
    else:
        entries = (entry for _, entry in timeline.read_since(here.records, begin, one))
    if form == TABLE:
        text = False
        for block in timeline.group_entries(entries, selected):
            print_block(block)
            text = True
        if not text:
            say(f"No events found in the last {since or '1h'}.", err=True)
    elif form == YAML:
        output.print_records(map(timeline.make_row, filter(selected.takes, entries)), form)
    else:
        print_entries(filter(selected.takes, entries), form)


def _find_cluster(here: Installation, cluster: str, namespace: str, begin: datetime) -> str:
    """Return the key of a cluster; the lines of a deregistered one are still there."""
    try:
        return find_cluster(here, cluster, namespace)
    except MissingError:
        key = cluster if "/" in cluster else f"{namespace}/{cluster}"
        if timeline.has_entries(here.records, begin, key):
            return key
        raise


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
    "promoted": "green",
    "stalled": "red",
    "rolled back": "yellow",
    "warning": "yellow",
    "error": "red",
    "failed": "red",
}
_SHOWN = {"rang": "changed", "gone": "deleted"}
"""Words for decisions in records that people see by another name."""

_VERBS = {"rang": " changed", "gone": " was deleted"}
_TRACE = 8
_WHAT = 9
_BELOW = " " * 12
"""The indent of a line that continues a longer one."""


def print_block(block: list[Entry]) -> None:
    """Print one event, then its effects."""
    first = block[0]
    who = object_name(first.object) or format_profile(first) or "Something"
    place = f" in {first.cluster}" if first.cluster else ""
    heading = f"{who}{_VERBS.get(first.what, '') if first.trace else ''}{place}"
    if not first.trace:
        heading += ", after a resync or a change of manifests"
    trace = f"  {visible(first.trace[:_TRACE])}" if first.trace else ""
    when = style(_format_clock(first.at), "bright_black")
    print_styled(wrap(f"{when}{trace}  {style(heading, 'white', bold=True)}", _BELOW))
    for entry in block:
        if entry is first and entry.what in {"rang", "gone"} and not entry.detail:
            continue
        other = f"{entry.cluster}: " if entry.cluster not in ("", first.cluster) else ""
        text = visible(f"{other}{_format_detail(entry)}")
        print_styled(
            wrap(f"  {_format_decision(entry)} {text}{_format_timing(entry)}".rstrip(), _BELOW)
        )


def print_line(entry: Entry) -> None:
    trace = entry.trace[:_TRACE] or "-" * _TRACE
    who = object_name(entry.object) or format_profile(entry)
    place = f" in {entry.cluster}" if entry.cluster else ""
    detail = f": {_format_detail(entry)}" if entry.detail else ""
    when = style(_format_clock(entry.at), "bright_black")
    text = visible(f"{who}{place}{detail}")
    line = f"{when}  {visible(trace)}  {_format_decision(entry)} {text}{_format_timing(entry)}"
    print_styled(wrap(line.rstrip(), _BELOW))


def print_json_line(entry: Entry) -> None:
    print_styled(format_json_line(make_row(entry)))


def _format_decision(entry: Entry) -> str:
    return style(f"{_SHOWN.get(entry.what, entry.what):<{_WHAT}}", COLOURS.get(entry.what, "white"))


def _format_detail(entry: Entry) -> str:
    if entry.detail:
        return entry.detail
    context = entry.context
    return str(context.get("source") or context.get("profile") or "")


def _format_timing(entry: Entry) -> str:
    since = entry.context.get("since_ring_ms")
    parts = []
    if entry.took_ms:
        parts.append(f"took {entry.took_ms:.1f} ms")
    if since is not None:
        parts.append(f"{since:.0f} ms after the event")
    return style(f"  ({', '.join(parts)})", "bright_black") if parts else ""


def _format_clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def print_entries(entries: Iterable[Entry], form: str) -> None:
    print_entry = print_json_line if form == JSON else print_line
    for entry in entries:
        print_entry(entry)


def follow_entries(entries: Iterable[Entry], form: str) -> None:
    """Print entries as they come, until Ctrl-C, which is no error."""
    try:
        print_entries(entries, form)
    except KeyboardInterrupt:
        # It is how following ends, not how it fails.
        say("", err=True)
