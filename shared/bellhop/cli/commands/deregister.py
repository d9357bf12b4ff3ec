"""`bellhop deregister`: a cluster leaves the fleet."""

from __future__ import annotations

import click

from bellhop.cli.clusters import cluster_argument, cluster_option, known, one_cluster
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation

_EXAMPLES = (
    "bellhop deregister cluster prod/eu-1",
    "bellhop deregister cluster --namespace prod --cluster eu-1",
)


@click.group("deregister", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Take a cluster out of the fleet."""


@command.command(
    "cluster",
    cls=Command,
    usage=(
        "NAMESPACE/NAME [--uninstall]",
        "--namespace NAMESPACE --cluster NAME [--uninstall]",
    ),
    examples=_EXAMPLES,
)
@cluster_argument(required=False)
@cluster_option
@click.option(
    "--uninstall",
    is_flag=True,
    help="Delete the forwarder's Deployment, Service and NetworkPolicy also if their"
    " namespace stays.",
)
@state_option
def cluster(key: str | None, namespace: str, cluster: str, *, uninstall: bool) -> None:
    """Take a cluster out of the fleet.

    The webhook and the forwarder are removed from the cluster, if it answers, then its credentials
    and all its records. Add-ons stay in it; add-ons in other clusters that its events caused are
    withdrawn.
    """
    from bellhop.fleet.deregistration import deregister

    place, name = one_cluster(key, namespace, cluster)
    here = installation()
    found = known(here, name, place)
    done = deregister(here, found, uninstall=uninstall)
    say(f"Cluster '{found}' deregistered; the add-ons in it stay.")
    for each in done.removed:
        say(f"  removed {each}")
    if done.left:
        say(f"warning: {done.left}", err=True)
