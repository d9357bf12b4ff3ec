"""`bellhop pause`: leave what a profile or trigger has brought as it is, for a while."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.pausing import mark, what_argument


@click.command(
    "pause",
    cls=Command,
    examples=("bellhop pause kyverno", "bellhop pause team/web", "bellhop pause trigger welcome"),
)
@what_argument
@state_option
def command(words: tuple[str, ...]) -> None:
    """Leave what a profile or trigger has brought as it is, until `bellhop resume`.

    While a profile is paused nothing of it is applied, put back or withdrawn; while a trigger is,
    no event makes or ends anything. It is an annotation: applying a file without it ends the pause.
    """
    mark(words, "paused", "true")
