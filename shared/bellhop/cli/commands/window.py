"""`bellhop window`: a cluster takes changes from one time to another, and is paused otherwise."""

from __future__ import annotations

import click

from bellhop.cli.clusters import cluster_argument, known
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation

_EXAMPLE = "bellhop window cluster prod/eu-1 --from '0 20 * * 5' --to '0 5 * * 1'"


@click.group("window", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Restrict changes of clusters to a maintenance window."""


@command.command(
    "cluster",
    cls=Command,
    examples=(_EXAMPLE, "bellhop window cluster prod/eu-1 --clear"),
)
@cluster_argument(required=True)
@click.option("--from", "opens", metavar="CRON", help="When it becomes active, in UTC.")
@click.option("--to", "closes", metavar="CRON", help="When it is paused again, in UTC.")
@click.option("--clear", is_flag=True, help="Have it be active at any time.")
@state_option
def cluster(key: str, opens: str | None, closes: str | None, *, clear: bool) -> None:
    """Have a cluster be active from one time to another, and paused otherwise.

    Times are cron expressions of five fields: minute, hour, day of month, month, day of week.
    """
    from bellhop.engine.pausing import standing
    from bellhop.fleet.pausing import open_always, open_in

    if clear == bool(opens or closes) or bool(opens) != bool(closes):
        raise click.UsageError("give --from and --to, or --clear")
    here = installation()
    name = known(here, key)
    found = open_in(here, name, opens, closes) if opens and closes else open_always(here, name)
    say(f"Cluster '{name}' {standing(found, here.records.clock.now())}.")
