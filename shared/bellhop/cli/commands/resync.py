"""`bellhop resync`: list the objects of clusters now, before it is due."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.clusters import known, named_cluster
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say


@click.command(
    "resync",
    cls=Command,
    examples=("bellhop resync", "bellhop resync prod/eu-1 --full"),
)
@named_cluster
@click.option("--full", is_flag=True, help="Evaluate all objects, not only those that changed.")
@state_option
def command(key: str | None, *, full: bool) -> None:
    """Resync one cluster, or all of them, now.

    `bellhop serve` or the functions do this; the command requests it.
    """
    from bellhop.messages import Sweep

    here = session.installation()
    one = known(here, key)
    wanted = [one] if one else list(here.catalogs.current().clusters)
    here.publisher.publish(Sweep(each, full=full) for each in wanted)
    say(f"Requested a resync of {one or count(len(wanted), 'cluster')}.")
    if wanted and not session.serves(here):
        say(f"warning: {here.worker.name} does not answer; it is done once it runs", err=True)
