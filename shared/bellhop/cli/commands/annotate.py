"""`bellhop annotate`: what templates read of a cluster beside its labels."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bellhop.cli.clusters import cluster_argument, known
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import state_option
from bellhop.cli.output import pairs, say
from bellhop.cli.session import installation

_EXAMPLE = "bellhop annotate cluster prod/eu-1 owner='Team Red' zone-"


@click.group("annotate", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Set and remove annotations."""


@command.command(
    "cluster",
    cls=Command,
    examples=(_EXAMPLE, "bellhop annotate cluster prod/eu-1 --data registry=eu.example.com"),
)
@cluster_argument(required=True)
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE|KEY-...")
@click.option("--data", is_flag=True, help="Change .Cluster.spec.data instead of the annotations.")
@state_option
def cluster(key: str, changes: Sequence[str], *, data: bool) -> None:
    """Set annotations of a cluster, or remove those followed by a dash.

    Templates read them as `.Cluster.metadata.annotations`, and data as `.Cluster.spec.data`.
    Annotations and data together may have 64 KiB.
    """
    from bellhop.cli.labels import read_changes

    told = read_changes(changes, "datum" if data else "annotation")
    here = installation()
    changed = here.declare.annotate(known(here, key), {} if data else told, told if data else {})
    there = changed.spec.get("data") or {} if data else changed.annotations
    say(f"cluster/{changed.key} annotated {pairs(there)}")
