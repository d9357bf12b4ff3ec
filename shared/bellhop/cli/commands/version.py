"""`bellhop version`: which release this is."""

from __future__ import annotations

import platform
from importlib.metadata import version

import click

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
        say(f"bellhop {version('bellhop')}")
        return
    found = {"bellhop": version("bellhop"), "python": platform.python_version()}
    objects([found], form, one=True)
