"""`bellhop release`: confirm removals that the deletion guard holds."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_cluster, complete_source
from bellhop.cli.output import format_count, say
from bellhop.cli.selection import find_cluster


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
def command(cluster: str, eventsource: str, *, change: str, everything: bool) -> None:
    """Confirm removals that the deletion guard holds, as `bellhop get held` lists them.

    Only removals that are held when the command runs are confirmed; later ones are counted
    separately. `bellhop serve` or the functions do this; the command requests it.
    """
    asked = bool(cluster) + bool(change) + everything
    if asked != 1 or bool(cluster) != bool(eventsource):
        raise click.UsageError("name a cluster and an EventSource, or give --change or --all")
    from bellhop.diagnosis.held_clusters import list_held_clusters, release_clusters
    from bellhop.diagnosis.held_deletions import group_by_change, list_held_reports, release_report

    here = session.open_installation()
    places = [(find_cluster(here, cluster), eventsource)] if cluster else []
    changes = [change] if change else []
    if everything:
        places = [(each.hold.cluster, each.hold.source) for each in list_held_reports(here)]
        changes = [
            each.name for each in group_by_change(x.value for x in here.records.removals.all())
        ]
        changes += [each.name for each in list_held_clusters(here)]
    for name in changes:
        if clusters := release_clusters(here, name):
            say(f"Released {format_count(len(clusters), 'cluster')} of change '{name}'.")
            continue
        addons = sum(each.addons for each in here.declare.release(name))
        say(f"Released {format_count(addons, 'add-on')} of change '{name}'.")
    for place in places:
        found = release_report(here, *place)
        objects = format_count(found.number, "object")
        say(f"Released {objects} of EventSource '{place[1]}' in '{place[0]}'.")
    if not places and not changes:
        say("Nothing is held.", err=True)
    else:
        session.warn_unless_served(here)
