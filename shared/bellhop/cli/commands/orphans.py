"""`bellhop delete orphans`: delete the objects with Bellhop's labels that no profile owns."""

from __future__ import annotations

import click

from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.session import installation


@click.command(
    "orphans",
    cls=Command,
    usage=("--cluster [NAMESPACE/]NAME",),
    examples=("bellhop delete orphans --cluster prod/eu-1",),
)
@cluster_option
@state_option
def command(namespace: str, cluster: str) -> None:
    """Delete from a cluster the orphans that `bellhop show orphans` lists.

    Each object is read again: it stays if a profile owns it by now, or if somebody re-created it.
    """
    from bellhop.diagnosis.orphans import remove
    from bellhop.diagnosis.overview import object_name

    if not cluster:
        raise click.UsageError("name the cluster: --cluster NAMESPACE/NAME")
    found = False
    here = installation()
    for orphan, deleted in remove(here, known(here, cluster, namespace)):
        found = True
        verb = "Deleted" if deleted else "Kept"
        say(f"{verb} {object_name(orphan.key)} of '{orphan.finding.profile}'.")
    if not found:
        say("No orphans found.", err=True)
