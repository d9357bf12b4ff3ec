"""`bellhop redeploy` and `bellhop resync`: apply contents again, and list clusters now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from bellhop.cli import session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_profile
from bellhop.cli.kinds import find_kind, singular_name, split_kind
from bellhop.cli.output import format_count, say
from bellhop.cli.queries import (
    PROFILES,
    TRIGGER,
    join_kind,
    read_profile_name,
    resolve_profile_or_trigger,
)
from bellhop.cli.selection import (
    SELECTABLE,
    FindKeys,
    Selection,
    cluster_option,
    find_cluster,
    for_each,
    named_clusters,
    read_selected_kind,
    select_clusters,
    select_objects,
    selection_options,
)
from bellhop.errors import BellhopError, MissingError

if TYPE_CHECKING:
    from bellhop.installation import Installation
    from bellhop.operations.redeployment import RequestedProfile


_CLUSTER = "cluster"


class Target(NamedTuple):
    """The deployments to repeat: of a profile, a trigger or a cluster; with none, all."""

    profile: str = ""
    cluster: str = ""
    trigger: str = ""


@click.command(
    "redeploy",
    cls=Command,
    usage=(
        "[PROFILE] [--cluster [NAMESPACE/]NAME] [--unchecked]",
        "cluster NAMESPACE/NAME",
        "cluster --namespace NAMESPACE --cluster NAME",
        "KIND -l SELECTOR | --all",
    ),
    examples=(
        "bellhop redeploy kyverno",
        "bellhop redeploy --cluster prod/eu-1",
        "bellhop redeploy cluster prod/eu-1",
        "bellhop redeploy kyverno --unchecked",
        "bellhop redeploy clusters -l env=production",
    ),
)
@click.argument(
    "words",
    nargs=-1,
    metavar="[PROFILE | cluster NAMESPACE/NAME]",
    shell_complete=complete_profile,
)
@cluster_option
@click.option(
    "--cluster-type",
    type=click.Choice(["Capi", "Sveltos"], case_sensitive=False),
    expose_value=False,
    help="Has no effect: accepted because sveltosctl has it.",
)
@click.option(
    "--unchecked",
    is_flag=True,
    help="Remove a withdrawn profile without its preDeleteChecks and postDeleteChecks.",
)
@selection_options
def command(
    words: tuple[str, ...], namespace: str, cluster: str, selection: Selection, *, unchecked: bool
) -> None:
    """Apply again all objects of a profile, of a cluster, or with neither of everything.

    With -l or --all these are all such objects of a KIND: clusters, clusterprofiles, profiles,
    rolerequests or triggers.

    A resync restores deleted objects; this command also reverts what others changed in fields that
    Bellhop applied. With --unchecked, a withdrawn profile that waits for its preDeleteChecks or
    postDeleteChecks is removed without them. PROFILE is the NAME of a ClusterProfile, the
    NAMESPACE/NAME of a Profile, or KIND NAME, as in `rolerequest NAME`. The name of a trigger, if
    no profile has it, means all profiles that it generated. `bellhop serve` or the functions do
    this; the command requests it.
    """
    if selection.selector and not words:
        raise click.UsageError("name a kind beside -l")
    if selection and words and (namespace or cluster or unchecked):
        raise click.UsageError("use -l and --all with only a kind")
    select = selection and words
    word, cluster = ("", cluster) if select else _read_words(words, namespace, cluster)
    here = session.open_installation()
    if select:
        targets = _select_targets(here, words, selection)
    else:
        targets = [_find_target(here, word, namespace, cluster, unchecked=unchecked)]
    asked: list[RequestedProfile] = []
    try:
        _redeploy_each(here, targets, asked, unchecked=unchecked)
    except BellhopError:
        if asked:
            _report(here, asked)
        raise
    _report(here, asked)


def _report(here: Installation, asked: Sequence[RequestedProfile]) -> None:
    from bellhop.diagnosis.names import ProfileNames

    titled = ProfileNames(here)
    say(f"Asked for {format_count(len(asked), 'deployment')}.")
    for each in asked:
        if each.busy:
            name = titled.shown(each.profile)
            say(
                f"warning: '{name}' is just being applied to '{each.cluster}'; ask again"
                " when that has ended",
                err=True,
            )
    if asked:
        session.warn_unless_served(here)


def _redeploy_each(
    here: Installation, targets: Sequence[Target], asked: list[RequestedProfile], *, unchecked: bool
) -> None:
    """Request the deployments of each target; one of several may have none."""
    from bellhop.cli.printer import Progress
    from bellhop.operations.redeployment import redeploy

    with Progress() as progress:

        def ask(target: Target) -> None:
            before = len(asked)
            profile, cluster, trigger = target
            try:
                asked.extend(
                    redeploy(
                        here,
                        profile,
                        cluster,
                        trigger=trigger,
                        unchecked=unchecked,
                        report_progress=lambda number: progress.count(
                            before + number, "deployments are asked for"
                        ),
                    )
                )
            except MissingError:
                if len(targets) == 1:
                    raise

        for_each(targets, ask)


def _find_target(
    here: Installation, word: str, namespace: str, cluster: str, *, unchecked: bool
) -> Target:
    from bellhop.diagnosis.names import resolve_profile

    profile, trigger = resolve_profile_or_trigger(here, word) if word else ("", "")
    if unchecked and (trigger or not profile):
        raise click.UsageError("--unchecked goes with one profile")
    return Target(resolve_profile(here, profile), find_cluster(here, cluster, namespace), trigger)


def _select_targets(
    here: Installation, words: tuple[str, ...], selection: Selection
) -> list[Target]:
    from bellhop.api.kinds import DeclarationKey
    from bellhop.diagnosis.names import resolve_profile

    kind = read_selected_kind(words, SELECTABLE)
    if kind == _CLUSTER:
        return [Target(cluster=key) for key in select_clusters(here, selection)]
    rows = select_objects(here, kind, selection)
    if kind == TRIGGER:
        return [Target(trigger=row["name"]) for row in rows]
    [stored] = find_kind(kind).stored
    rules = [
        resolve_profile(here, row["name"])
        if row.get("trigger")
        else DeclarationKey(stored, row["namespace"], row["name"]).rule
        for row in rows
    ]
    return [Target(profile=rule) for rule in rules]


def _read_words(words: tuple[str, ...], namespace: str, cluster: str) -> tuple[str, str]:
    """Read a profile or, as sveltosctl has it, `cluster` with its name or with options."""
    kind, name = split_kind(words[0], [_CLUSTER]) if len(words) == 1 else ("", "")
    first, *others = (kind, name) if kind else join_kind(words, (*PROFILES, TRIGGER)) or ("",)
    in_their_words = singular_name(first) == _CLUSTER and (others or cluster)
    names = others if in_their_words else [first]
    if len(names) > 1 or (not in_their_words and others) or (names and in_their_words and cluster):
        raise click.UsageError("name one profile, or one cluster")
    if namespace and not cluster and not in_their_words:
        raise click.UsageError("--namespace goes with --cluster")
    if in_their_words:
        return "", (names or [cluster])[0]
    read_profile_name(first)
    return first, cluster


@click.command(
    "resync",
    cls=Command,
    examples=(
        "bellhop resync",
        "bellhop resync prod/eu-1 --full",
        "bellhop resync -l env=production",
    ),
)
@named_clusters
@click.option("--full", is_flag=True, help="Evaluate all objects, not only those that changed.")
def resync(find_keys: FindKeys, *, full: bool) -> None:
    """Resync one cluster, those that are selected, or without either all of them, now.

    `bellhop serve` or the functions do this; the command requests it.
    """
    from bellhop.state.messages import Resync

    here = session.open_installation()
    keys = find_keys(here) or list(here.catalogs.current().clusters)
    here.publisher.publish(Resync(each, full=full) for each in keys)
    names = keys[0] if len(keys) == 1 else format_count(len(keys), "cluster")
    say(f"Requested a resync of {names}.")
    if keys:
        session.warn_unless_served(here)
