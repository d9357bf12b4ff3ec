"""`bellhop set`: settings of a cluster that are no labels or annotations."""

from __future__ import annotations

import click

from bellhop.cli.command import Group
from bellhop.cli.output import say
from bellhop.cli.selection import cluster_argument, find_cluster
from bellhop.cli.session import open_installation

_EXAMPLE = "bellhop set maintenance-window prod/eu-1 --from '0 20 * * 5' --to '0 5 * * 1'"


@click.group("set", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Set the maintenance windows of clusters, and the cluster that holds the configuration."""


@command.command(
    "maintenance-window",
    usage=(
        "NAMESPACE/NAME --from CRON --to CRON",
        "NAMESPACE/NAME --clear",
    ),
    examples=(_EXAMPLE, "bellhop set maintenance-window prod/eu-1 --clear"),
)
@cluster_argument(required=True)
@click.option("--from", "opens", metavar="CRON", help="When the window opens, in UTC.")
@click.option("--to", "closes", metavar="CRON", help="When the window closes, in UTC.")
@click.option(
    "--clear", is_flag=True, help="Remove the window: the cluster may be changed at all times."
)
def maintenance_window(key: str, opens: str | None, closes: str | None, *, clear: bool) -> None:
    """Set the times at which a cluster may be changed; otherwise it is paused.

    Times are cron expressions of five fields, in UTC: minute, hour, day of month, month and day of
    week.
    """
    from bellhop.clusters.pause import describe_pause
    from bellhop.operations.pause import clear_window, set_window

    if clear == bool(opens or closes) or bool(opens) != bool(closes):
        raise click.UsageError("give --from and --to, or --clear")
    here = open_installation()
    name = find_cluster(here, key)
    found = set_window(here, name, opens, closes) if opens and closes else clear_window(here, name)
    say(f"Cluster '{name}' {describe_pause(found, here.records.clock.now())}.")


@command.command(
    "configuration-cluster",
    usage=("NAMESPACE/NAME [--preview]", "--clear [--leave-policies]"),
    examples=(
        "bellhop set configuration-cluster mgmt/mgmt",
        "bellhop set configuration-cluster --clear",
    ),
)
@cluster_argument(required=False)
@click.option("--preview", is_flag=True, help="Read its objects, and put none of them in force.")
@click.option(
    "--clear", is_flag=True, help="End it: everything in force stays, as if files had it."
)
@click.option(
    "--leave-policies",
    "leave",
    is_flag=True,
    help="With --clear, for a return to Sveltos: nothing stays in force, what was deployed is left"
    " in the clusters, and the objects keep Sveltos' finalizers.",
)
def configuration_cluster(key: str | None, *, preview: bool, clear: bool, leave: bool) -> None:
    """Have the custom resources of one cluster be the configuration.

    kubectl, Flux and Argo CD change it there, with the same manifests as `bellhop apply`. Of
    ConfigMaps and Secrets those are read that a manifest names. Manifests that files have applied
    stay in force; `bellhop get configuration` lists where each manifest is kept.
    """
    from bellhop.configuration.origin import clear_configuration_cluster, set_configuration_cluster

    if clear == bool(key) or (clear and preview) or (leave and not clear):
        raise click.UsageError("name a cluster, as NAMESPACE/NAME, or give --clear")
    here = open_installation()
    if not key:
        name = clear_configuration_cluster(here, leave=leave)
        rest = "what it deployed is left" if leave else "everything in force stays"
        say(f"Cluster '{name}' holds the configuration no more; {rest}.")
        return
    name = set_configuration_cluster(here, find_cluster(here, key), preview=preview).key
    say(f"Cluster '{name}' {'shows a preview of' if preview else 'holds'} the configuration.")
