"""`bellhop redeploy`: apply again what profiles hold, whatever is known of it."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.asking import PROFILES, TRIGGER, join_kind, profile_named, profile_or_trigger
from bellhop.cli.clusters import cluster_option, known
from bellhop.cli.completing import complete_profile
from bellhop.cli.examples import Command
from bellhop.cli.kinds import singular
from bellhop.cli.options import state_option
from bellhop.cli.output import count, say

_CLUSTER = "cluster"


@click.command(
    "redeploy",
    cls=Command,
    usage=(
        "[PROFILE] [--cluster [NAMESPACE/]NAME] [--unchecked]",
        "cluster NAMESPACE/NAME",
        "cluster --namespace NAMESPACE --cluster NAME",
    ),
    examples=(
        "bellhop redeploy kyverno",
        "bellhop redeploy --cluster prod/eu-1",
        "bellhop redeploy cluster prod/eu-1",
        "bellhop redeploy kyverno --unchecked",
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
@state_option
def command(words: tuple[str, ...], namespace: str, cluster: str, *, unchecked: bool) -> None:
    """Apply again all objects of a profile, of a cluster, or with neither of everything.

    A resync restores deleted objects; this command also reverts what others changed in fields that
    Bellhop applied. With --unchecked, a withdrawn profile that waits for its preDeleteChecks or
    postDeleteChecks is removed without them. PROFILE is the NAME of a ClusterProfile, the
    NAMESPACE/NAME of a Profile, or KIND NAME, as in `rolerequest NAME`. The name of a trigger, if
    no profile has it, means all profiles that it generated. `bellhop serve` or the functions do
    this; the command requests it.
    """
    from bellhop.cli.progress import Progress
    from bellhop.fleet.redeploying import redeploy
    from bellhop.fleet.titled import Titled, meant

    word, cluster = _read(words, namespace, cluster)
    here = session.installation()
    profile, trigger = profile_or_trigger(here, word) if word else ("", "")
    if unchecked and (trigger or not profile):
        raise click.UsageError("--unchecked goes with one profile")
    goes = known(here, cluster, namespace)
    with Progress() as progress:
        asked = redeploy(
            here,
            meant(here, profile),
            goes,
            trigger=trigger,
            unchecked=unchecked,
            tell=lambda number: progress.count(number, "deployments are asked for"),
        )
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


def _read(words: tuple[str, ...], namespace: str, cluster: str) -> tuple[str, str]:
    """Read a profile or, in sveltosctl's words, `cluster` with its name or with options."""
    first, *others = join_kind(words, (*PROFILES, TRIGGER)) or ("",)
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
