"""`bellhop release`: remove what is held because too much would leave at once."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.clusters import known
from bellhop.cli.completion import complete_cluster, complete_source
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say


@click.command(
    "release",
    cls=Command,
    usage=(
        "CLUSTER EVENTSOURCE",
        "--change ID",
        "--all",
    ),
    examples=(
        "bellhop release prod/eu-1 ingresses",
        "bellhop release --change 3f2a9c01",
        "bellhop release --all",
    ),
)
@click.argument("cluster", required=False, default="", shell_complete=complete_cluster)
@click.argument("eventsource", required=False, default="", shell_complete=complete_source)
@click.option(
    "--change",
    default="",
    metavar="ID",
    help="The change to release, by the name that `bellhop get held` shows.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Everything that is held, in every cluster."
)
@state_option
def command(cluster: str, eventsource: str, *, change: str, everything: bool) -> None:
    """Confirm removals that the deletion guard holds, as `bellhop get held` lists them.

    Only removals that are held when the command runs are confirmed; later ones are counted
    separately. `bellhop serve` or the functions do this; the command requests it.
    """
    asked = bool(cluster) + bool(change) + everything
    if asked != 1 or bool(cluster) != bool(eventsource):
        raise click.UsageError("name a cluster and an EventSource, or give --change or --all")
    from bellhop.diagnosis.held_deletions import held, release
    from bellhop.diagnosis.held_removals import grouped

    here = session.installation()
    wanted = [(known(here, cluster), eventsource)] if cluster else []
    changes = [change] if change else []
    if everything:
        wanted = [(each.hold.cluster, each.hold.source) for each in held(here)]
        changes = [each.name for each in grouped(x.value for x in here.records.removals.all())]
    for name in changes:
        addons = sum(each.addons for each in here.declare.release(name))
        say(f"Released {count(addons, 'add-on')} of change '{name}'.")
    for place in wanted:
        found = release(here, *place)
        objects = count(found.number, "object")
        say(f"Released {objects} of EventSource '{place[1]}' in '{place[0]}'.")
    if not wanted and not changes:
        say("Nothing is held.", err=True)
    elif not session.serves(here):
        say(f"warning: {here.worker.name} does not answer; it is done once it runs", err=True)
