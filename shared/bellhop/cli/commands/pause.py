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
    """Pause a profile, the profiles of a trigger, or a cluster, until `bellhop resume`.

    While a profile is paused, nothing of it is applied, corrected or removed; while a trigger is
    paused, events create and remove nothing. The pause is an annotation: applying a file without
    it ends the pause. While a cluster is paused, it is not changed, and its events are ignored.
    """
    mark(words, "paused", "true")
