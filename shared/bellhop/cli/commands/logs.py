"""`bellhop logs`: the log of the functions of an installation in a cloud."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.command import Command
from bellhop.cli.options import TABLE, YAML, read_duration
from bellhop.cli.output import say
from bellhop.cli.printer import line_options
from bellhop.cli.selection import find_cluster
from bellhop.cli.session import choose_context, open_installation
from bellhop.errors import MissingError

if TYPE_CHECKING:
    from bellhop.state.event_log import Entry

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
    from bellhop.cli import event_log
    from bellhop.cli.providers.provider import load_provider
    from bellhop.diagnosis import timeline

    ago = read_duration(since) if since else timedelta(hours=0 if follow else 1)
    context = choose_context()
    journal = load_provider(context).open_log(context, os.environ, stage)
    begin = datetime.now(UTC) - ago
    selected = timeline.Filter(trace, _find_cluster(cluster, namespace), source)
    if follow:
        event_log.follow_entries(
            timeline.select_entries(journal.follow(begin, wait=_warn), selected), form
        )
        return
    found = journal.read(begin)
    if form != TABLE:
        entries = list(timeline.select_entries(found, selected))[-limit:]
        if form == YAML:
            output.print_records(map(timeline.make_row, entries), form)
        else:
            event_log.print_entries(entries, form)
        return
    blocks = list(_take_last(list(timeline.group_entries(found, selected)), limit))
    for block in blocks:
        _print_block(block)
    if not blocks:
        say(f"No lines found in the last {since or '1h'}.", err=True)


def _find_cluster(cluster: str, namespace: str) -> str:
    """Return the key of a cluster; the lines of a deregistered one are still there."""
    if not (cluster or namespace):
        return ""
    try:
        return find_cluster(open_installation(), cluster, namespace)
    except MissingError:
        if "/" in cluster:
            return cluster
        raise


def _take_last(blocks: list[list[Entry]], limit: int) -> Iterable[list[Entry]]:
    """Return the last blocks, of at least `limit` lines; all of them if it is 0."""
    first, lines = len(blocks), 0
    while first and (not limit or lines < limit):
        first -= 1
        lines += len(blocks[first])
    return blocks[first:]


def _print_block(block: list[Entry]) -> None:
    from bellhop.cli import event_log

    if block[0].what in _TROUBLES:
        event_log.print_line(block[0])
    else:
        event_log.print_block(block)


def _warn(said: str) -> None:
    say(f"warning: {said}; it is asked again", err=True)
