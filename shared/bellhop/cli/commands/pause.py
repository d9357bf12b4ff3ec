"""`bellhop pause` and `resume`: leave a profile, trigger, promotion or cluster unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bellhop.cli import session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_paused
from bellhop.cli.kinds import find_kind, singular_name, split_kind
from bellhop.cli.output import say
from bellhop.cli.queries import PROFILES, PROMOTION, TRIGGER, join_kind, read_profile_name
from bellhop.cli.selection import (
    SELECTABLE,
    Selection,
    find_cluster,
    for_each,
    read_selected_kind,
    select_applied,
    select_clusters,
    selection_options,
)

if TYPE_CHECKING:
    from bellhop.api.manifest import DeclarationKey
    from bellhop.cli.output import Row
    from bellhop.installation import Installation


RESUMED = "resumed"
_CLUSTER = "cluster"
_NAMED = (TRIGGER, PROMOTION, _CLUSTER)
_ONE = "name one profile, or `trigger`, `promotion` or `cluster` and its name"

target_argument = click.argument(
    "words",
    nargs=-1,
    metavar="PROFILE | trigger NAME | promotion NAME | cluster NAMESPACE/NAME",
    shell_complete=complete_paused,
)


def pause_targets(
    words: tuple[str, ...], selection: Selection, done: str, value: str | None
) -> None:
    """Set or, with no value, remove the pause of each target, and print the result."""
    if selection:
        _pause_selected(words, selection, done, value)
    elif words:
        _pause_one(words, done, value)
    else:
        raise click.UsageError(_ONE)


def _pause_selected(
    words: tuple[str, ...], selection: Selection, done: str, value: str | None
) -> None:
    """Pause all selected objects of a kind, except profiles that a trigger generated."""
    from bellhop.api.kinds import DeclarationKey
    from bellhop.operations.pause import pause_manifest

    kind = read_selected_kind(words, SELECTABLE)
    here = session.open_installation()
    if kind == _CLUSTER:
        keys = select_clusters(here, selection)
        for_each(keys, lambda key: _pause_cluster(here, key, done, paused=value is not None))
        return

    def mark_row(row: Row) -> None:
        namespace = row["namespace"] if find_kind(kind).namespaced else ""
        for each in find_kind(kind).stored:
            key = DeclarationKey(each, namespace, row["name"])
            if here.records.manifests.has(*key):
                is_new = pause_manifest(here, key, value) != "unchanged"
                _report(key.kind, key.place, done, is_new=is_new)

    for_each(select_applied(here, kind, selection), mark_row)


def _pause_one(words: tuple[str, ...], done: str, value: str | None) -> None:
    from bellhop.diagnosis.names import resolve_trigger
    from bellhop.operations.pause import pause_manifest

    what, name = _read_target(words)
    trigger, profile = (name, "") if what else ("", read_profile_name(name))
    here = session.open_installation()
    if what == _CLUSTER:
        _pause_cluster(here, name, done, paused=value is not None)
        return
    if profile and resolve_trigger(here, profile):
        say(f"'{profile}' is a trigger: this applies to all profiles that it generated.", err=True)
        trigger, profile = profile, ""
    key = _find_key(here, what, trigger, profile, "resume" if value is None else "pause")
    is_new = pause_manifest(here, key, value) != "unchanged"
    _report(key.kind, key.place, done, is_new=is_new)


def _find_key(
    here: Installation, what: str, trigger: str, profile: str, verb: str
) -> DeclarationKey:
    from bellhop.diagnosis.names import resolve_profile
    from bellhop.operations.pause import find_pausable
    from bellhop.operations.promotions import find_promotion

    if what == PROMOTION:
        return find_promotion(here, trigger).key
    return find_pausable(here, trigger, resolve_profile(here, profile), verb)


def _pause_cluster(here: Installation, name: str, done: str, *, paused: bool) -> None:
    from bellhop.clusters.pause import describe_pause, window_in
    from bellhop.operations.pause import pause_cluster

    key = find_cluster(here, name)
    is_new = pause_cluster(here, key, paused=paused) != "unchanged"
    kept = here.records.clusters.get(key)
    window = bool(kept and not paused and window_in(kept.value))
    _report("Cluster", key, done, is_new=is_new, by=" by `bellhop pause`" * window)
    if kept and window:
        say(f"It {describe_pause(kept.value, here.records.clock.now())}.")


def _report(kind: str, place: str, done: str, *, is_new: bool, by: str = "") -> None:
    unchanged = f"is not paused{by}" if done == RESUMED else f"is {done} already"
    say(f"{kind} '{place}' {done if is_new else unchanged}.")


def _read_target(words: tuple[str, ...]) -> tuple[str, str]:
    """Read a kind and its name, or the name of a profile, whose kind is empty."""
    first, *others = join_kind(words, (*PROFILES, *_NAMED))
    if others or singular_name(first) in _NAMED:
        raise click.UsageError(_ONE)
    return split_kind(first, _NAMED)


@click.command(
    "pause",
    cls=Command,
    usage=(
        "PROFILE",
        "trigger NAME",
        "promotion NAME",
        "cluster NAMESPACE/NAME",
        "KIND -l SELECTOR | --all",
    ),
    examples=(
        "bellhop pause kyverno",
        "bellhop pause team/web",
        "bellhop pause trigger welcome",
        "bellhop pause promotion agent",
        "bellhop pause cluster prod/eu-1",
        "bellhop pause clusters -l env=production",
    ),
)
@target_argument
@selection_options
def command(words: tuple[str, ...], selection: Selection) -> None:
    """Leave a profile, a promotion, the add-ons of a trigger, or a cluster unchanged.

    The pause ends by `bellhop resume`.

    With -l or --all these are all such objects of a KIND: clusters, clusterprofiles, profiles,
    rolerequests or triggers; profiles that a trigger generated are left out.

    While a profile is paused, nothing of it is applied, restored or withdrawn; while a promotion is
    paused, so are all its stages, and no release is promoted; while a trigger is paused, its events
    are ignored. While a cluster is paused, nothing is applied, restored or
    withdrawn in it, and its events are ignored. The pause is an annotation: applying a file without
    it ends the pause.
    """
    pause_targets(words, selection, "paused", "true")


@click.command(
    "resume",
    cls=Command,
    usage=(
        "PROFILE",
        "trigger NAME",
        "promotion NAME",
        "cluster NAMESPACE/NAME",
        "KIND -l SELECTOR | --all",
    ),
    examples=(
        "bellhop resume kyverno",
        "bellhop resume trigger welcome",
        "bellhop resume cluster prod/eu-1",
    ),
)
@target_argument
@selection_options
def resume(words: tuple[str, ...], selection: Selection) -> None:
    """End a pause; Bellhop then catches up."""
    pause_targets(words, selection, RESUMED, None)
