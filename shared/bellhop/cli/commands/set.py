"""`bellhop set`: set what is no label or annotation of a cluster, as when it may be changed."""

from __future__ import annotations

import click

from bellhop.cli.clusters import cluster_argument, known
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation

_EXAMPLE = "bellhop set maintenance-window prod/eu-1 --from '0 20 * * 5' --to '0 5 * * 1'"


@click.group("set", cls=Group, examples=(_EXAMPLE,))
@state_option
def command() -> None:
    """Set the maintenance windows of clusters."""


@command.command(
    "maintenance-window",
    cls=Command,
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
@state_option
def maintenance_window(key: str, opens: str | None, closes: str | None, *, clear: bool) -> None:
    """Set the times at which a cluster may be changed; otherwise it is paused.

    Times are cron expressions of five fields, in UTC: minute, hour, day of month, month and day of
    week.
    """
    from bellhop.clusters.pause import standing
    from bellhop.operations.pause import open_always, open_in

    if clear == bool(opens or closes) or bool(opens) != bool(closes):
        raise click.UsageError("give --from and --to, or --clear")
    here = installation()
    name = known(here, key)
    found = open_in(here, name, opens, closes) if opens and closes else open_always(here, name)
    say(f"Cluster '{name}' {standing(found, here.records.clock.now())}.")
