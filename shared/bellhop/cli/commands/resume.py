"""`bellhop resume`: have what was paused go on."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.pause import RESUMED, mark, what_argument
from bellhop.cli.selection import Selection, selection_options


@click.command(
    "resume",
    cls=Command,
    usage=(
        "PROFILE",
        "trigger NAME",
        "cluster NAMESPACE/NAME",
        "KIND -l SELECTOR | --all",
    ),
    examples=(
        "bellhop resume kyverno",
        "bellhop resume trigger welcome",
        "bellhop resume cluster prod/eu-1",
    ),
)
@what_argument
@selection_options
@state_option
def command(words: tuple[str, ...], selection: Selection) -> None:
    """End a pause; Bellhop then catches up."""
    mark(words, selection, RESUMED, None)
