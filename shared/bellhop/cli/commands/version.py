"""`bellhop version`: which release this is."""

from __future__ import annotations

import platform

import click

from bellhop import __version__
from bellhop.cli.examples import Command
from bellhop.cli.options import JSON, TABLE, YAML
from bellhop.cli.output import objects, say


@click.command("version", cls=Command, examples=("bellhop version", "bellhop version -o json"))
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice([TABLE, JSON, YAML]),
    default=TABLE,
    help="Form of the output.",
)
def command(form: str) -> None:
    """Print the version of this program, and of the Python that runs it."""
    if form == TABLE:
        say(f"bellhop {__version__}")
        return
    found = {"bellhop": __version__, "python": platform.python_version()}
    objects([found], form, one=True)
