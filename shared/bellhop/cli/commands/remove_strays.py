"""`bellhop remove-strays`: remove what carries our marks and nobody holds."""

from __future__ import annotations

import click

from bellhop.cli.clusters import cluster_argument, known
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation


@click.command("remove-strays", cls=Command, examples=("bellhop remove-strays prod/eu-1",))
@cluster_argument(required=True)
@state_option
def command(key: str) -> None:
    """Remove from a cluster the orphans that `bellhop show strays` lists.

    Each is checked again: one that a profile owns by now, or that was re-created, is kept.
    """
    from bellhop.fleet.overview import object_name
    from bellhop.fleet.strays import remove

    found = False
    here = installation()
    for stray, removed in remove(here, known(here, key)):
        found = True
        verb = "Removed" if removed else "Left"
        say(f"{verb} {object_name(stray.key)} of '{stray.finding.profile}'.")
    if not found:
        say("No orphans found.", err=True)
