"""`bellhop pause`: leave a profile, what a trigger brought, or a cluster as it is for a while."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.pausing import mark, what_argument


@click.command(
    "pause",
    cls=Command,
    usage=(
        "PROFILE",
        "trigger NAME",
        "cluster NAMESPACE/NAME",
    ),
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
    """Leave a profile, the add-ons of a trigger, or a cluster unchanged, until `bellhop resume`.

    While a profile is paused, nothing of it is applied, restored or withdrawn; while a trigger is
    paused, events create and end nothing. While a cluster is paused, nothing is applied, restored
    or withdrawn in it, and its events create and end nothing. The pause is an annotation: applying
    a file without it ends the pause.
    """
    mark(words, "paused", "true")
