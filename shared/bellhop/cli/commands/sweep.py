"""`bellhop sweep`: look at clusters now, not when it is due."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say
from bellhop.errors import MissingError


@click.command("sweep", cls=Command, examples=("bellhop sweep", "bellhop sweep prod/eu-1 --full"))
@click.argument("key", required=False, metavar="[NAMESPACE/NAME]")
@click.option("--full", is_flag=True, help="Evaluate all objects, not only those that changed.")
@state_option
def command(key: str | None, *, full: bool) -> None:
    """Have one cluster, or all of them, listed now.

    The sweep itself is done by `bellhop serve`; this asks for it.
    """
    from bellhop.messages import Sweep

    here = session.installation()
    known = here.catalogs.current().clusters
    if key is not None and key not in known:
        raise MissingError(
            f"cannot sweep cluster '{key}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    wanted = [key] if key else list(known)
    here.publisher.publish(Sweep(each, full=full) for each in wanted)
    say(f"Asked for a sweep of {key or count(len(wanted), 'cluster')}.")
    if wanted and not session.answers(here.inbound):
        say("warning: `bellhop serve` does not answer; it is done once it runs", err=True)
