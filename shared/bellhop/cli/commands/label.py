"""`bellhop label`: labels decide which triggers and profiles concern a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from bellhop.cli.cluster_changes import ChangedClusters, changed_clusters, overwrite_option
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import DRY, dry_run_option, state_option
from bellhop.cli.output import pairs, say
from bellhop.cli.selection import for_each
from bellhop.cli.session import installation
from bellhop.errors import BellhopError

if TYPE_CHECKING:
    from bellhop.declarations.records.held_removals import Rule
    from bellhop.installation.installation import Installation
    from bellhop.state.held_removal import HeldRemoval
    from bellhop.state.record import Cluster

_EXAMPLE = "bellhop label cluster prod/eu-1 env=prod canary-"


@click.group("label", cls=Group, examples=(_EXAMPLE,))
@state_option
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
    keys = changed.keys(here)
    if dry_run:
        _rehearse(here, keys, found, overwrite=overwrite)
        return
    if len(keys) > 1:
        here.declare.hold_also(_excessive(here, keys, found, overwrite=overwrite))
    _label(here, keys, found, overwrite=overwrite)


def _label(
    here: Installation, keys: Sequence[str], changes: Mapping[str, str | None], *, overwrite: bool
) -> None:
    """Label each cluster, then report once what is held of all of them."""
    from bellhop.cli.removal_warnings import say_held

    held: dict[Rule, HeldRemoval] = {}

    def label(key: str) -> None:
        labelled = here.declare.label(key, changes, overwrite=overwrite)
        held.update({each.rule: each for each in here.declare.held})
        say(f"cluster/{labelled.key} labelled {pairs(labelled.labels)}")

    try:
        for_each(keys, label)
    finally:
        say_held(list(held.values()))


def _rehearse(
    here: Installation,
    keys: Sequence[str],
    changes: Mapping[str, str | None],
    *,
    overwrite: bool,
) -> None:
    """Print the labels that clusters would have, and the add-ons that all of this would remove."""
    from bellhop.cli.removal_warnings import say_plan

    new: list[Cluster] = []

    def rehearse(key: str) -> None:
        new.append(here.declare.relabelled(key, changes, overwrite=overwrite))
        say(f"cluster/{key} labelled {pairs(new[-1].labels)}{DRY}")

    try:
        for_each(keys, rehearse)
    finally:
        say_plan(here, here.declare.foresee_clusters(new))


def _excessive(
    here: Installation, keys: Sequence[str], changes: Mapping[str, str | None], *, overwrite: bool
) -> set[Rule]:
    """Return the triggers and profiles that lose too much by the labels of all clusters."""
    new: list[Cluster] = []
    for key in keys:
        # Labelling it reports the reason.
        with suppress(BellhopError):
            new.append(here.declare.relabelled(key, changes, overwrite=overwrite))
    return {each.rule for each in here.declare.foresee_clusters(new).held}
