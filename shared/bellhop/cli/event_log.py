"""What `bellhop show events` prints of the event log: blocks, lines or records."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bellhop.cli import events, lines, output
from bellhop.cli.clusters import known
from bellhop.cli.duration import read_duration
from bellhop.cli.options import TABLE, YAML
from bellhop.cli.output import say
from bellhop.diagnosis import timeline
from bellhop.errors import MissingError
from bellhop.installation.installation import Installation
from bellhop.state.record import Entry


def show(  # noqa: PLR0913 - one parameter an option of the command
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
    """Print what happened, oldest first; with `follow` also what happens from now on.

    Raises:
        InvalidError: `since` is no duration.
        MissingError: there is no such cluster, and no line of it.
    """
    ago = read_duration(since) if since else timedelta(hours=0 if follow else 1)
    begin = timeline.beginning(here.records, ago)
    cluster = _told_of(here, cluster, namespace, begin)
    wanted = timeline.Filter(trace, cluster)
    if follow:
        lines.follow(filter(wanted.takes, timeline.follow(here.records, begin, cluster)), form)
        return
    # A block is printed in full, even if its event went from one cluster to another.
    one = "" if form == TABLE else cluster
    entries: Iterable[Entry]
    if limit:
        entries = timeline.last(here.records, begin, wanted, limit, one)
        if form != TABLE:
            entries = [entry for entry in entries if wanted.takes(entry)][-limit:]
    else:
        entries = (entry for _, entry in timeline.read(here.records, begin, one))
    if form == TABLE:
        told = False
        for block in timeline.blocks(entries, wanted):
            events.tell(block)
            told = True
        if not told:
            say(f"No events found in the last {since or '1h'}.", err=True)
    elif form == YAML:
        output.records(map(timeline.row, filter(wanted.takes, entries)), form)
    else:
        lines.tell_lines(filter(wanted.takes, entries), form)


def _told_of(here: Installation, cluster: str, namespace: str, begin: datetime) -> str:
    """Return the key of a cluster; one that left the fleet has its lines as long as they are kept.

    Raises:
        MissingError: there is no such cluster, and no line of it.
    """
    try:
        return known(here, cluster, namespace)
    except MissingError:
        key = cluster if "/" in cluster else f"{namespace}/{cluster}"
        if timeline.tells_of(here.records, begin, key):
            return key
        raise
