"""`bellhop redeploy`: apply again what profiles hold, whatever is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from bellhop.cli import session
from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.completion import complete_profile
from bellhop.cli.examples import Command
from bellhop.cli.kinds import kind_named, singular, split_kind
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say
from bellhop.cli.pause import SELECTABLE
from bellhop.cli.queries import PROFILES, TRIGGER, join_kind, profile_named, profile_or_trigger
from bellhop.cli.selection import (
    Selection,
    for_each,
    select_clusters,
    select_objects,
    selected_kind,
    selection_options,
)
from bellhop.errors import BellhopError, MissingError

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation
    from bellhop.operations.redeployment import Asked

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
@state_option
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
    word, cluster = ("", cluster) if select else _read(words, namespace, cluster)
    here = session.installation()
    if select:
        targets = _select(here, words, selection)
    else:
        targets = [_named(here, word, namespace, cluster, unchecked=unchecked)]
    asked: list[Asked] = []
    try:
        _redeploy_each(here, targets, asked, unchecked=unchecked)
    except BellhopError:
        if asked:
            _report(here, asked)
        raise
    _report(here, asked)


def _report(here: Installation, asked: Sequence[Asked]) -> None:
    from bellhop.diagnosis.names import Titled

    titled = Titled(here)
    say(f"Asked for {count(len(asked), 'deployment')}.")
    for each in asked:
        if each.busy:
            name = titled.shown(each.profile)
            say(
                f"warning: '{name}' is just being applied to '{each.cluster}'; ask again"
                " when that has ended",
                err=True,
            )
    if asked and not session.serves(here):
        say(f"warning: {here.worker.name} does not answer; it is done once it runs", err=True)


def _redeploy_each(
    here: Installation, targets: Sequence[Target], asked: list[Asked], *, unchecked: bool
) -> None:
    """Ask for the deployments of each target; of several, one may have none."""
    from bellhop.cli.progress import Progress
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
                        tell=lambda number: progress.count(
                            before + number, "deployments are asked for"
                        ),
                    )
                )
            except MissingError:
                if len(targets) == 1:
                    raise

        for_each(targets, ask)


def _named(
    here: Installation, word: str, namespace: str, cluster: str, *, unchecked: bool
) -> Target:
    from bellhop.diagnosis.names import meant

    profile, trigger = profile_or_trigger(here, word) if word else ("", "")
    if unchecked and (trigger or not profile):
        raise click.UsageError("--unchecked goes with one profile")
    return Target(meant(here, profile), known(here, cluster, namespace), trigger)


def _select(here: Installation, words: tuple[str, ...], selection: Selection) -> list[Target]:
    from bellhop.api.kinds import DeclarationKey
    from bellhop.diagnosis.names import meant

    kind = selected_kind(words, SELECTABLE)
    if kind == _CLUSTER:
        return [Target(cluster=key) for key in select_clusters(here, selection)]
    rows = select_objects(here, kind, selection)
    if kind == TRIGGER:
        return [Target(trigger=row["name"]) for row in rows]
    [stored] = kind_named(kind).stored
    rules = [
        meant(here, row["name"])
        if row.get("trigger")
        else DeclarationKey(stored, row["namespace"], row["name"]).rule
        for row in rows
    ]
    return [Target(profile=rule) for rule in rules]


def _read(words: tuple[str, ...], namespace: str, cluster: str) -> tuple[str, str]:
    """Read a profile or, in sveltosctl's words, `cluster` with its name or with options."""
    kind, name = split_kind(words[0], [_CLUSTER]) if len(words) == 1 else ("", "")
    first, *others = (kind, name) if kind else join_kind(words, (*PROFILES, TRIGGER)) or ("",)
    in_their_words = singular(first) == _CLUSTER and (others or cluster)
    names = others if in_their_words else [first]
    if len(names) > 1 or (not in_their_words and others) or (names and in_their_words and cluster):
        raise click.UsageError("name one profile, or one cluster")
    if namespace and not cluster and not in_their_words:
        raise click.UsageError("--namespace goes with --cluster")
    if in_their_words:
        return "", (names or [cluster])[0]
    profile_named(first)
    return first, cluster
