"""`bellhop resume`: have what was paused go on."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.pausing import mark, what_argument


@click.command(
    "resume",
    cls=Command,
    usage=(
        "PROFILE",
        "trigger NAME",
        "cluster NAMESPACE/NAME",
    ),
    examples=(
        "bellhop resume kyverno",
        "bellhop resume trigger welcome",
        "bellhop resume cluster prod/eu-1",
    ),
)
@what_argument
@state_option
def command(words: tuple[str, ...]) -> None:
    """End a pause; Bellhop then catches up."""
    mark(words, "resumed", None)
