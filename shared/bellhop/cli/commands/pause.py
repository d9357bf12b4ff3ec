"""`bellhop pause`: leave a profile, what a trigger brought, or a cluster as it is for a while."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.pausing import mark, what_argument


@click.command(
    "pause",
    cls=Command,
    examples=(
        "bellhop pause kyverno",
        "bellhop pause team/web",
        "bellhop pause trigger welcome",
        "bellhop pause cluster prod/eu-1",
    ),
)
@what_argument
@state_option
def command(words: tuple[str, ...]) -> None:
    """Leave a profile, what a trigger has brought, or a cluster as it is, until `bellhop resume`.

    While a profile is paused nothing of it is applied, put back or withdrawn; while a trigger is,
    no event makes or ends anything. It is an annotation: applying a file without it ends the pause.
    While a cluster is paused nothing is changed in it, and what happens in it makes nothing.
    """
    mark(words, "paused", "true")
