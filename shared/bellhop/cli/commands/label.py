"""`bellhop label`: labels decide which triggers and profiles concern a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bellhop.cli.cluster_changes import ChangedClusters, changed_clusters, overwrite_option
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import DRY, dry_run_option, state_option
from bellhop.cli.output import pairs, say
from bellhop.cli.selection import for_each
from bellhop.cli.session import installation

if TYPE_CHECKING:
    from bellhop.fleet.installation import Installation

_EXAMPLE = "bellhop label cluster prod/eu-1 env=prod canary-"


@click.group("label", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Set and remove labels."""


@command.command(
    "cluster",
    cls=Command,
    usage=(
        "NAMESPACE/NAME KEY=VALUE|KEY-... [OPTIONS]",
        "-l SELECTOR | --all KEY=VALUE|KEY-... [OPTIONS]",
    ),
    examples=(_EXAMPLE, "bellhop label cluster -l region=eu tier=gold --overwrite"),
)
@changed_clusters
@overwrite_option
@dry_run_option
@state_option
def cluster(changed: ChangedClusters, *, overwrite: bool, dry_run: str | None) -> None:
    """Set labels of a cluster, or remove those followed by a dash.

    With -l or --all they are set in all such clusters. A label that has another value is replaced
    only with --overwrite. Triggers and profiles are evaluated again. A cluster may have 256 labels.
    """
    from bellhop.cli.labels import read_changes

    found = read_changes(changed.changes)
    here = installation()
    for_each(
        changed.keys(here),
        lambda key: _label(here, key, found, overwrite=overwrite, dry_run=bool(dry_run)),
    )


def _label(
    here: Installation,
    key: str,
    changes: Mapping[str, str | None],
    *,
    overwrite: bool,
    dry_run: bool,
) -> None:
    from bellhop.cli.holding import say_held, say_plan

    if dry_run:
        labelled, plan = here.declare.foresee_labels(key, changes, overwrite=overwrite)
    else:
        labelled, plan = here.declare.label(key, changes, overwrite=overwrite), None
    say(f"cluster/{labelled.key} labelled {pairs(labelled.labels)}{DRY if dry_run else ''}")
    if plan:
        say_plan(plan)
    else:
        say_held(here.declare.held)
