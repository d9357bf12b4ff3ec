"""`bellhop label`: labels decide which triggers and profiles concern a cluster."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bellhop.cli.clusters import cluster_argument, known
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import DRY, dry_run_option, state_option
from bellhop.cli.output import pairs, say
from bellhop.cli.session import installation

_EXAMPLE = "bellhop label cluster prod/eu-1 env=prod canary-"


@click.group("label", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Set and remove labels."""


@command.command("cluster", cls=Command, examples=(_EXAMPLE,))
@cluster_argument(required=True)
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE|KEY-...")
@dry_run_option
@state_option
def cluster(key: str, changes: Sequence[str], *, dry_run: str | None) -> None:
    """Set labels of a cluster, or remove those followed by a dash.

    Triggers and profiles are evaluated again. A cluster may have 256 labels.
    """
    from bellhop.cli.holding import say_held
    from bellhop.cli.labels import read_changes

    found = read_changes(changes)
    here = installation()
    name = known(here, key)
    if dry_run:
        labelled, foreseen = here.declare.foresee_labels(name, found)
    else:
        labelled, foreseen = here.declare.label(name, found), list(here.declare.held)
    say(f"cluster/{labelled.key} labelled {pairs(labelled.labels)}{DRY if dry_run else ''}")
    say_held(foreseen, dry=bool(dry_run))
