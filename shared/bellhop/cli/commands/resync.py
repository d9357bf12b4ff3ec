"""`bellhop resync`: list the objects of clusters now, before it is due."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say
from bellhop.cli.selection import FindKeys, named_clusters


@click.command(
    "resync",
    cls=Command,
    examples=(
        "bellhop resync",
        "bellhop resync prod/eu-1 --full",
        "bellhop resync -l env=production",
    ),
)
@named_clusters
@click.option("--full", is_flag=True, help="Evaluate all objects, not only those that changed.")
@state_option
def command(find_keys: FindKeys, *, full: bool) -> None:
    """Resync one cluster, those that are selected, or without either all of them, now.

    `bellhop serve` or the functions do this; the command requests it.
    """
    from bellhop.state.messages import Resync

    here = session.installation()
    wanted = find_keys(here) or list(here.catalogs.current().clusters)
    here.publisher.publish(Resync(each, full=full) for each in wanted)
    say(
        f"Requested a resync of {wanted[0] if len(wanted) == 1 else count(len(wanted), 'cluster')}."
    )
    if wanted and not session.serves(here):
        say(f"warning: {here.worker.name} does not answer; it is done once it runs", err=True)
