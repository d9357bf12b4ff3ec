"""What `bellhop pause` and `bellhop resume` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bellhop.cli import session
from bellhop.cli.clusters import known
from bellhop.cli.completion import complete_paused
from bellhop.cli.kinds import kind_named, singular, split_kind
from bellhop.cli.output import say
from bellhop.cli.queries import PROFILES, TRIGGER, join_kind, profile_named
from bellhop.cli.selection import (
    Selection,
    for_each,
    select_applied,
    select_clusters,
    selected_kind,
)

if TYPE_CHECKING:
    from bellhop.cli.output import Row
    from bellhop.installation.installation import Installation

RESUMED = "resumed"
_CLUSTER = "cluster"
SELECTABLE = {
    _CLUSTER: "clusters",
    "clusterprofile": "clusterprofiles",
    "profile": "profiles",
    "rolerequest": "rolerequests",
    TRIGGER: "triggers",
}

what_argument = click.argument(
    "words",
    nargs=-1,
    metavar="PROFILE | trigger NAME | cluster NAMESPACE/NAME",
    shell_complete=complete_paused,
)


def mark(words: tuple[str, ...], selection: Selection, done: str, value: str | None) -> None:
    """Pause what is meant, or without a value have it go on, and say so."""
    if selection:
        _mark_selected(words, selection, done, value)
    elif words:
        _mark_one(words, done, value)
    else:
        raise click.UsageError("name one profile, or `trigger` or `cluster` and its name")


def _mark_selected(
    words: tuple[str, ...], selection: Selection, done: str, value: str | None
) -> None:
    """Pause all selected objects of a kind, but profiles that a trigger generated."""
    from bellhop.api.kinds import DeclarationKey
    from bellhop.operations.pause import mark

    kind = selected_kind(words, SELECTABLE)
    here = session.installation()
    if kind == _CLUSTER:
        keys = select_clusters(here, selection)
        for_each(keys, lambda key: _mark_cluster(here, key, done, paused=value is not None))
        return

    def mark_row(row: Row) -> None:
        namespace = row["namespace"] if kind_named(kind).namespaced else ""
        for each in kind_named(kind).stored:
            key = DeclarationKey(each, namespace, row["name"])
            if here.records.manifests.has(*key):
                is_new = mark(here, key, value) != "unchanged"
                _tell(key.kind, key.place, done, is_new=is_new)

    for_each(select_applied(here, kind, selection), mark_row)


def _mark_one(words: tuple[str, ...], done: str, value: str | None) -> None:
    from bellhop.diagnosis.names import meant, trigger_meant
    from bellhop.operations.pause import mark, pausable

    what, name = _read(words)
    trigger, profile = (name, "") if what else ("", profile_named(name))
    here = session.installation()
    if what == _CLUSTER:
        _mark_cluster(here, name, done, paused=value is not None)
        return
    if profile and trigger_meant(here, profile):
        say(f"'{profile}' is a trigger: this applies to all profiles that it generated.", err=True)
        trigger, profile = profile, ""
    key = pausable(here, trigger, meant(here, profile))
    is_new = mark(here, key, value) != "unchanged"
    _tell(key.kind, key.place, done, is_new=is_new)


def _mark_cluster(here: Installation, name: str, done: str, *, paused: bool) -> None:
    from bellhop.clusters.pause import standing, window_in
    from bellhop.operations.pause import pause

    key = known(here, name)
    is_new = pause(here, key, paused=paused) != "unchanged"
    kept = here.records.clusters.get(key)
    window = bool(kept and not paused and window_in(kept.value))
    _tell("Cluster", key, done, is_new=is_new, by=" by `bellhop pause`" * window)
    if kept and window:
        say(f"It {standing(kept.value, here.records.clock.now())}.")


def _tell(kind: str, place: str, done: str, *, is_new: bool, by: str = "") -> None:
    unchanged = f"is not paused{by}" if done == RESUMED else f"is {done} already"
    say(f"{kind} '{place}' {done if is_new else unchanged}.")


def _read(words: tuple[str, ...]) -> tuple[str, str]:
    """Read what is meant: a trigger or cluster and its name, or only the name of a profile."""
    first, *others = join_kind(words, (*PROFILES, TRIGGER, _CLUSTER))
    if others or singular(first) in (TRIGGER, _CLUSTER):
        raise click.UsageError("name one profile, or `trigger` or `cluster` and its name")
    return split_kind(first, (TRIGGER, _CLUSTER))
