"""`bellhop redeploy`: apply again what profiles hold, whatever is known of it."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say


@click.command(
    "redeploy",
    cls=Command,
    examples=("bellhop redeploy kyverno", "bellhop redeploy --cluster prod/eu-1"),
)
@click.argument("profile", required=False, metavar="[PROFILE]")
@click.option("--cluster", default="", metavar="NAMESPACE/NAME", help="In this cluster alone.")
@state_option
def command(profile: str | None, cluster: str) -> None:
    """Have all that a profile, or a cluster, holds applied again.

    Sweeps put back what is gone; this applies what is there, too, and undoes what others changed
    in it. It is done by `bellhop serve`; this asks for it.
    """
    from bellhop.fleet.redeploying import redeploy

    here = session.installation()
    asked = redeploy(here, profile or "", cluster)
    say(f"Asked for {count(len(asked), 'deployment')}.")
    for each in asked:
        if each.busy:
            say(
                f"warning: '{each.profile}' is just being applied to '{each.cluster}'; ask again"
                " when that has ended",
                err=True,
            )
    if asked and not session.answers(here.inbound):
        say("warning: `bellhop serve` does not answer; it is done once it runs", err=True)
