"""`bellhop annotate`: what templates read of a cluster beside its labels."""

from __future__ import annotations

import click

from bellhop.cli.cluster_changes import ChangedClusters, changed_clusters, overwrite_option
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import state_option
from bellhop.cli.output import pairs, say
from bellhop.cli.selection import for_each
from bellhop.cli.session import installation

_EXAMPLE = "bellhop annotate cluster prod/eu-1 owner='Team Red' zone-"


@click.group("annotate", cls=Group, examples=(_EXAMPLE,))
@state_option
def command() -> None:
    """Set and remove annotations."""


@command.command(
    "cluster",
    cls=Command,
    usage=(
        "NAMESPACE/NAME KEY=VALUE|KEY-... [OPTIONS]",
        "-l SELECTOR | --all KEY=VALUE|KEY-... [OPTIONS]",
    ),
    examples=(_EXAMPLE, "bellhop annotate cluster prod/eu-1 --data registry=eu.example.com"),
)
@changed_clusters
@click.option("--data", is_flag=True, help="Change .Cluster.spec.data instead of the annotations.")
@overwrite_option
@state_option
def cluster(changed: ChangedClusters, *, data: bool, overwrite: bool) -> None:
    """Set annotations of a cluster, or remove those followed by a dash.

    With -l or --all they are set in all such clusters. An annotation that has another value is
    replaced only with --overwrite. Templates read them as `.Cluster.metadata.annotations`, and data
    as `.Cluster.spec.data`. Annotations and data together may have 64 KiB.
    """
    from bellhop.cli.labels import read_changes

    found = read_changes(changed.changes, "datum" if data else "annotation")
    here = installation()

    def annotate(key: str) -> None:
        parts = ({}, found) if data else (found, {})
        done = here.declare.annotate(key, *parts, overwrite=overwrite)
        there = done.spec.get("data") or {} if data else done.annotations
        say(f"cluster/{done.key} annotated {pairs(there)}")

    for_each(changed.keys(here), annotate)
