"""`bellhop logs`: what the functions of an installation in a cloud have logged."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from bellhop.cli import lines, output
from bellhop.cli.clusters import known
from bellhop.cli.duration import read_duration
from bellhop.cli.examples import Command
from bellhop.cli.lines import line_options
from bellhop.cli.options import TABLE, YAML
from bellhop.cli.output import say
from bellhop.cli.session import chosen, installation
from bellhop.errors import MissingError

if TYPE_CHECKING:
    from bellhop.state.record import Entry

_TROUBLES = ("warning", "error")


@click.command(
    "logs",
    cls=Command,
    examples=(
        "bellhop logs --since 10m",
        "bellhop logs --follow --cluster prod/eu-1",
        "bellhop logs --stage schedule -o json",
    ),
)
@click.option(
    "--source",
    metavar="NAME",
    default="",
    help="Only matches of this EventSource, and their effects.",
)
@click.option(
    "--stage",
    metavar="STAGE",
    default="",
    help="Only the lines of one function: ingest, evaluate, deploy, sweep or schedule.",
)
@line_options
def command(  # noqa: PLR0913 - one parameter an option
    *,
    since: str | None,
    source: str,
    stage: str,
    trace: str,
    namespace: str,
    cluster: str,
    limit: int,
    form: str,
    follow: bool,
) -> None:
    """Show the logs of the functions, from CloudWatch or Cloud Logging.

    They have the decisions that `bellhop show events` shows, and also warnings, errors, and
    functions that the cloud has ended. The embedded mode writes its log to standard output.
    """
    from bellhop.cli.providers import place_of
    from bellhop.diagnosis import timeline

    ago = read_duration(since) if since else timedelta(hours=0 if follow else 1)
    context = chosen()
    journal = place_of(context).journal(context, os.environ, stage)
    begin = datetime.now(UTC) - ago
    wanted = timeline.Filter(trace, _key(cluster, namespace), source)
    if follow:
        lines.follow(timeline.chosen(journal.follow(begin, wait=_warn), wanted), form)
        return
    found = journal.read(begin)
    if form != TABLE:
        entries = list(timeline.chosen(found, wanted))[-limit:]
        if form == YAML:
            output.records(map(timeline.row, entries), form)
        else:
            lines.tell_lines(entries, form)
        return
    blocks = list(_last(list(timeline.blocks(found, wanted)), limit))
    for block in blocks:
        _block(block)
    if not blocks:
        say(f"No lines found in the last {since or '1h'}.", err=True)


def _key(cluster: str, namespace: str) -> str:
    """Return the key of a cluster; one that left the fleet has its lines as long as they are kept.

    Raises:
        MissingError: no cluster is meant by it.
    """
    if not (cluster or namespace):
        return ""
    try:
        return known(installation(), cluster, namespace)
    except MissingError:
        if "/" in cluster:
            return cluster
        raise


def _last(blocks: list[list[Entry]], limit: int) -> Iterable[list[Entry]]:
    """Return the last blocks, of so many lines at least; all where there is no limit."""
    first, lines = len(blocks), 0
    while first and (not limit or lines < limit):
        first -= 1
        lines += len(blocks[first])
    return blocks[first:]


def _block(block: list[Entry]) -> None:
    from bellhop.cli import events

    if block[0].what in _TROUBLES:
        events.tell_line(block[0])
    else:
        events.tell(block)


def _warn(said: str) -> None:
    say(f"warning: {said}; it is asked again", err=True)
