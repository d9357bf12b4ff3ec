"""`bellhop label` and `bellhop annotate`: change the labels, annotations and data of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from msgspec import Struct

from bellhop.cli.command import Group
from bellhop.cli.options import DRY, dry_run_option
from bellhop.cli.output import format_labels, say
from bellhop.cli.selection import (
    Selection,
    cluster_argument,
    find_cluster,
    for_each,
    select_clusters,
    selection_options,
)
from bellhop.cli.session import open_installation
from bellhop.errors import BellhopError

if TYPE_CHECKING:
    from bellhop.declarations.records import HeldRemoval, Rule
    from bellhop.installation import Installation
    from bellhop.state.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])


class ChangedClusters(Struct, frozen=True):
    """The changes that a command line has, and the clusters that they are for."""

    name: str
    selection: Selection
    changes: Sequence[str]

    def keys(self, here: Installation) -> list[str]:
        if self.selection:
            return select_clusters(here, self.selection)
        return [find_cluster(here, self.name)]


def changed_clusters(command: F) -> F:
    """Add a cluster, -l or --all, and changes; the parameter `changed` has all of them."""

    @wraps(command)
    def call(
        *, key: str | None, changes: Sequence[str], selection: Selection, **others: Any
    ) -> Any:
        # With -l or --all no cluster is named: the first word is a change, too.
        words = [*([key] if key else []), *changes]
        name = "" if selection or not words else words.pop(0)
        if not words:
            raise click.UsageError(
                "name a cluster, -l or --all, and a change, as KEY=VALUE or KEY-"
            )
        return command(changed=ChangedClusters(name, selection, words), **others)

    changes = click.argument("changes", nargs=-1, metavar="KEY=VALUE|KEY-...")
    return cluster_argument(required=False)(changes(selection_options(cast("F", call))))


def overwrite_option(command: F) -> F:
    return click.option(
        "--overwrite", is_flag=True, help="Replace other values that the keys have."
    )(command)


_EXAMPLE = "bellhop label cluster prod/eu-1 env=prod canary-"


@click.group("label", cls=Group, examples=(_EXAMPLE,))
def command() -> None:
    """Set and remove labels."""


@command.command(
    "cluster",
    usage=(
        "NAMESPACE/NAME KEY=VALUE|KEY-... [OPTIONS]",
        "-l SELECTOR | --all KEY=VALUE|KEY-... [OPTIONS]",
    ),
    examples=(_EXAMPLE, "bellhop label cluster -l region=eu tier=gold --overwrite"),
)
@changed_clusters
@overwrite_option
@dry_run_option
def cluster(changed: ChangedClusters, *, overwrite: bool, dry_run: str | None) -> None:
    """Set labels of a cluster, or remove those followed by a dash.

    With -l or --all they are set in all such clusters. A label that has another value is replaced
    only with --overwrite. Triggers and profiles are evaluated again. A cluster may have 256 labels.
    """
    from bellhop.cli.options import read_changes

    found = read_changes(changed.changes)
    here = open_installation()
    keys = changed.keys(here)
    if dry_run:
        _preview(here, keys, found, overwrite=overwrite)
        return
    if len(keys) > 1:
        here.declare.hold_also(_find_excessive(here, keys, found, overwrite=overwrite))
    _label_each(here, keys, found, overwrite=overwrite)


def _label_each(
    here: Installation, keys: Sequence[str], changes: Mapping[str, str | None], *, overwrite: bool
) -> None:
    """Label each cluster, then report once the removals that are held of all of them."""
    from bellhop.cli.removal_warnings import say_held

    held: dict[Rule, HeldRemoval] = {}

    def label(key: str) -> None:
        labelled = here.declare.label(key, changes, overwrite=overwrite)
        held.update({each.rule: each for each in here.declare.held})
        say(f"cluster/{labelled.key} labelled {format_labels(labelled.labels)}")

    try:
        for_each(keys, label)
    finally:
        say_held(list(held.values()))


def _preview(
    here: Installation,
    keys: Sequence[str],
    changes: Mapping[str, str | None],
    *,
    overwrite: bool,
) -> None:
    """Print the labels that clusters would have, and the add-ons that all of this would remove."""
    from bellhop.cli.removal_warnings import say_plan

    new: list[Cluster] = []

    def preview_one(key: str) -> None:
        new.append(here.declare.relabelled(key, changes, overwrite=overwrite))
        say(f"cluster/{key} labelled {format_labels(new[-1].labels)}{DRY}")

    try:
        for_each(keys, preview_one)
    finally:
        say_plan(here, here.declare.foresee_clusters(new))


def _find_excessive(
    here: Installation, keys: Sequence[str], changes: Mapping[str, str | None], *, overwrite: bool
) -> set[Rule]:
    """Return the triggers and profiles that lose too much by the labels of all clusters."""
    new: list[Cluster] = []
    for key in keys:
        # Labelling it reports the reason.
        with suppress(BellhopError):
            new.append(here.declare.relabelled(key, changes, overwrite=overwrite))
    return {each.rule for each in here.declare.foresee_clusters(new).held}


_ANNOTATE_EXAMPLE = "bellhop annotate cluster prod/eu-1 owner='Team Red' zone-"


@click.group("annotate", cls=Group, examples=(_ANNOTATE_EXAMPLE,))
def annotate() -> None:
    """Set and remove annotations."""


@annotate.command(
    "cluster",
    usage=(
        "NAMESPACE/NAME KEY=VALUE|KEY-... [OPTIONS]",
        "-l SELECTOR | --all KEY=VALUE|KEY-... [OPTIONS]",
    ),
    examples=(
        _ANNOTATE_EXAMPLE,
        "bellhop annotate cluster prod/eu-1 --data registry=eu.example.com",
    ),
)
@changed_clusters
@click.option("--data", is_flag=True, help="Change .Cluster.spec.data instead of the annotations.")
@overwrite_option
def annotate_cluster(changed: ChangedClusters, *, data: bool, overwrite: bool) -> None:
    """Set annotations of a cluster, or remove those followed by a dash.

    With -l or --all they are set in all such clusters. An annotation that has another value is
    replaced only with --overwrite. Templates read them as `.Cluster.metadata.annotations`, and data
    as `.Cluster.spec.data`. Annotations and data together may have 64 KiB.
    """
    from bellhop.cli.options import read_changes

    found = read_changes(changed.changes, "datum" if data else "annotation")
    here = open_installation()

    def annotate(key: str) -> None:
        parts = ({}, found) if data else (found, {})
        done = here.declare.annotate(key, *parts, overwrite=overwrite)
        there = done.spec.get("data") or {} if data else done.annotations
        say(f"cluster/{done.key} annotated {format_labels(there)}")

    for_each(changed.keys(here), annotate)
