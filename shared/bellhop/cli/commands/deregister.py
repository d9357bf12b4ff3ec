"""`bellhop deregister`: a cluster leaves the fleet."""

from __future__ import annotations

import click

from bellhop.cli.examples import Command, Group
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation

_EXAMPLE = "bellhop deregister cluster --namespace prod --cluster eu-1"


@click.group("deregister", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Take a cluster out of the fleet."""


@command.command("cluster", cls=Command, examples=(_EXAMPLE,))
@click.option("--namespace", required=True, help="Namespace of the cluster in the fleet.")
@click.option("--cluster", "name", required=True, help="Name of the cluster in the fleet.")
@click.option(
    "--uninstall",
    is_flag=True,
    help="Remove the forwarder's Deployment, Service and NetworkPolicy, too.",
)
@state_option
def cluster(namespace: str, name: str, *, uninstall: bool) -> None:
    """Take a cluster out of the fleet.

    What makes it ring is removed from it as far as it answers. Add-ons that were applied to it
    stay; what other clusters got because of it is withdrawn from them.
    """
    from bellhop.fleet.registration import deregister

    key = f"{namespace}/{name}"
    done = deregister(installation(), key, uninstall=uninstall)
    say(f"Cluster '{key}' deregistered; the add-ons in it stay.")
    for each in done.removed:
        say(f"  removed {each}")
    if done.left:
        say(f"warning: {done.left}", err=True)
