"""What commands have in common that tell of events, line by line and as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bellhop.cli.clusters import cluster_option
from bellhop.cli.options import JSON, output_option, state_option
from bellhop.cli.output import say

if TYPE_CHECKING:
    from bellhop.state.record import Entry

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-f",
        "--follow",
        is_flag=True,
        help="Follow new lines. Ctrl-C ends it with exit code 0.",
    ),
    click.option(
        "--since",
        metavar="DURATION",
        help="How far back, as in 90s, 10m, 1h30m or 1d; by default 1h, with --follow from now.",
    ),
    click.option(
        "--trace",
        metavar="ID",
        default="",
        help="Only one event, by the first characters of its trace.",
    ),
    cluster_option,
    click.option(
        "--limit",
        metavar="LINES",
        type=click.IntRange(min=0),
        default=200,
        show_default=True,
        help="The number of last lines; 0 for all. Events among them are shown as a whole.",
    ),
    output_option,
    state_option,
)


def line_options(command: F) -> F:
    """Let the user choose which lines, how many, and in what form."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def tell_lines(entries: Iterable[Entry], form: str) -> None:
    """Print a line for each entry as it comes."""
    from bellhop.cli import events

    tell = events.tell_json if form == JSON else events.tell_line
    for entry in entries:
        tell(entry)


def follow(entries: Iterable[Entry], form: str) -> None:
    """Print what comes until the user has seen enough."""
    try:
        tell_lines(entries, form)
    except KeyboardInterrupt:
        # It is how following ends, not how it fails.
        say("", err=True)
