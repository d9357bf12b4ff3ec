"""What commands have in common that tell of events, line by line and as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bellhop.cli.clusters import cluster_option
from bellhop.cli.options import JSON, output_option, state_option
from bellhop.cli.output import say

if TYPE_CHECKING:
    from bellhop.model.record import Entry

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C."),
    click.option(
        "--since", help="How far back, as in 90s, 10m, 2h, 1d; else 1h, or now to follow."
    ),
    click.option("--trace", default="", help="One event, by the beginning of its trace."),
    cluster_option,
    click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=200,
        show_default=True,
        help="How many lines, the last ones; 0 for all.",
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
    from bellhop.cli import telling

    tell = telling.tell_json if form == JSON else telling.tell_line
    for entry in entries:
        tell(entry)


def follow(entries: Iterable[Entry], form: str) -> None:
    """Print what comes until the user has seen enough."""
    try:
        tell_lines(entries, form)
    except KeyboardInterrupt:
        # It is how following ends, not how it fails.
        say("", err=True)
