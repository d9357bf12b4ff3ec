"""`bellhop deregister` and `bellhop rotate`: remove a cluster, or renew its sender's token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli import session
from bellhop.cli.command import Command, Group
from bellhop.cli.options import DRY, dry_run_option
from bellhop.cli.output import format_time, say
from bellhop.cli.selection import (
    Selection,
    cluster_argument,
    cluster_option,
    find_cluster,
    for_each,
    named_cluster,
    read_cluster_name,
    select_clusters,
    selection_options,
)
from bellhop.cli.session import open_installation

if TYPE_CHECKING:
    from bellhop.installation import Installation


_EXAMPLES = (
    "bellhop deregister cluster prod/eu-1",
    "bellhop deregister cluster --namespace prod --cluster eu-1",
)


@click.group("deregister", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Take a cluster out of the fleet."""


@command.command(
    "cluster",
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
    named = None if selection else read_cluster_name(key, namespace, cluster)
    here = open_installation()
    if named is None:
        keys = select_clusters(here, selection, namespace)
    else:
        place, name = named
        keys = [find_cluster(here, name, place)]
    if dry_run:
        _preview(here, keys)
    else:
        for_each(keys, lambda each: _deregister(here, each, uninstall=uninstall))


def _preview(here: Installation, keys: Sequence[str]) -> None:
    from bellhop.cli.removal_warnings import say_plan

    plan = here.declare.foresee_deregistration(*keys)
    for key in keys:
        say(f"Cluster '{key}' deregistered; the add-ons in it stay.{DRY}")
    say_plan(here, plan)


def _deregister(here: Installation, key: str, *, uninstall: bool) -> None:
    from bellhop.registration.record_update import refuse_configured
    from bellhop.registration.removal import deregister

    refuse_configured(here, "deregister", key)
    done = deregister(here, key, uninstall=uninstall)
    say(f"Cluster '{key}' deregistered; the add-ons in it stay.")
    for each in done.removed:
        say(f"  removed {each}")
    if done.left:
        say(f"warning: {done.left}", err=True)


@click.command(
    "rotate",
    cls=Command,
    usage=("NAMESPACE/NAME [OPTIONS]",),
    examples=("bellhop rotate prod/eu-1",),
)
@named_cluster
@click.option(
    "--audit",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Folder for the files of an API server that sends its audit log; it has to restart.",
)
def rotate(key: str | None, audit: Path | None) -> None:
    """Give the sender of a cluster a new token, without interruption.

    The new token is valid before the sender has it, and the old one for five minutes after that;
    for a day if the API server sends its audit log, since it has to restart. If the cluster has a
    forwarder, the certificate and the path that the webhook calls are renewed, too. Neither token
    is shown. Regular rotation is not needed: rotate a token that may have leaked.
    """
    if key is None:
        raise click.UsageError("name one cluster, as NAMESPACE/NAME or with --namespace, --cluster")
    from bellhop.registration.renewal import rotate

    here = session.open_installation()
    cluster = rotate(here, find_cluster(here, key), audit)
    say(f"Cluster '{cluster.key}' has a new token.")
    say(f"  former       counts until {format_time(cluster.former_until)}")
