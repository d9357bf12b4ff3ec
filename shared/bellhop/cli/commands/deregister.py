"""`bellhop deregister`: a cluster leaves the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bellhop.cli.clusters import cluster_argument, cluster_option, known, one_cluster
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import DRY, dry_run_option, state_option
from bellhop.cli.output import say
from bellhop.cli.selection import Selection, for_each, select_clusters, selection_options
from bellhop.cli.session import installation

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation

_EXAMPLES = (
    "bellhop deregister cluster prod/eu-1",
    "bellhop deregister cluster --namespace prod --cluster eu-1",
)


@click.group("deregister", cls=Group, examples=_EXAMPLES)
@state_option
def command() -> None:
    """Take a cluster out of the fleet."""


@command.command(
    "cluster",
    cls=Command,
    usage=(
        "NAMESPACE/NAME [--uninstall] [--dry-run]",
        "--namespace NAMESPACE --cluster NAME [--uninstall] [--dry-run]",
        "-l SELECTOR | --all [--uninstall] [--dry-run]",
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
@selection_options
@dry_run_option
@state_option
def cluster(
    key: str | None,
    namespace: str,
    cluster: str,
    selection: Selection,
    *,
    uninstall: bool,
    dry_run: str | None,
) -> None:
    """Take a cluster, or all selected ones, out of the fleet.

    The webhook and the forwarder are removed from the cluster, if it answers, then its credentials
    and all its records. Add-ons stay in it; add-ons in other clusters that its events caused are
    withdrawn. --dry-run lists those.
    """
    if selection and (key or cluster):
        raise click.UsageError("name a cluster, or use -l or --all, not both")
    named = None if selection else one_cluster(key, namespace, cluster)
    here = installation()
    if named is None:
        keys = select_clusters(here, selection, namespace)
    else:
        place, name = named
        keys = [known(here, name, place)]
    if dry_run:
        _rehearse(here, keys)
    else:
        for_each(keys, lambda each: _deregister(here, each, uninstall=uninstall))


def _rehearse(here: Installation, keys: Sequence[str]) -> None:
    from bellhop.cli.removal_warnings import say_plan

    plan = here.declare.foresee_deregistration(*keys)
    for key in keys:
        say(f"Cluster '{key}' deregistered; the add-ons in it stay.{DRY}")
    say_plan(here, plan)


def _deregister(here: Installation, key: str, *, uninstall: bool) -> None:
    from bellhop.registration.deregistration import deregister

    done = deregister(here, key, uninstall=uninstall)
    say(f"Cluster '{key}' deregistered; the add-ons in it stay.")
    for each in done.removed:
        say(f"  removed {each}")
    if done.left:
        say(f"warning: {done.left}", err=True)
