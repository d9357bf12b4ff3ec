"""`bellhop wait`: a pipeline goes on once its change has arrived."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bellhop.cli.completion import complete_kind, complete_name
from bellhop.cli.duration import read_duration
from bellhop.cli.examples import Command
from bellhop.cli.options import DELETE, PROVISIONED, READY, state_option
from bellhop.cli.queries import Asked, asked, naming_options
from bellhop.cli.session import installation

_PROFILES = ("clusterprofile", "profile", "rolerequest")
_MEANT = {"cluster": READY, **dict.fromkeys((*_PROFILES, "eventtrigger"), PROVISIONED)}


@click.command(
    "wait",
    cls=Command,
    usage=(
        "KIND [NAMESPACE/]NAME... --for=CONDITION [OPTIONS]",
        "KIND -l SELECTOR | --all --for=CONDITION [OPTIONS]",
    ),
    examples=(
        "bellhop wait cluster prod/eu-1 --for=ready --timeout 5m",
        "bellhop wait clusterprofile web --for=provisioned",
        "bellhop wait eventtrigger web --for=delete",
    ),
)
@click.argument("kind", shell_complete=complete_kind)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_name)
@naming_options
@click.option("--all", "every", is_flag=True, help="All objects of the kind.")
@click.option(
    "--for",
    "condition",
    required=True,
    type=click.Choice([READY, PROVISIONED, DELETE]),
    help="`ready`, of clusters: it answers, and its first resync has succeeded."
    " `provisioned`, of ClusterProfiles, Profiles and RoleRequests: deployed in all"
    " clusters, as it is stored now; of EventTriggers: so are all profiles that it"
    " has generated, one at least. `delete`, of every kind: it does not exist any"
    " more; a profile exists until its clusters have nothing of it.",
)
@click.option(
    "--timeout",
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How long to wait, as in 90s or 10m.",
)
@state_option
def command(
    kind: str,
    names: Sequence[str],
    namespace: str,
    selector: str,
    condition: str,
    timeout: str,
    *,
    every: bool,
) -> None:
    """Wait for a condition on objects, and print a line for each that meets it.

    The exit code is 0 once all meet it, 1 if an object does not exist, and 75 after the timeout,
    which reports what each object is waiting for.
    """
    from bellhop.cli.wait import Wait, wait

    what = _objects(kind, names, namespace, selector, every=every)
    meant = _MEANT.get(what[0].kind.singular)
    if condition not in (DELETE, meant):
        possible = " and ".join(f"--for={each}" for each in (meant, DELETE) if each)
        raise click.UsageError(f"{what[0].kind.plural} have {possible}")
    patience = read_duration(timeout).total_seconds()
    wait(Wait(installation(), what, condition), patience)


def _objects(
    kind: str, names: Sequence[str], namespace: str, selector: str, *, every: bool
) -> list[Asked]:
    """Read which objects are waited for: KIND NAME..., KIND/NAME, by labels, or all."""
    kind, slash, first = kind.partition("/")
    names = [first, *names] if slash else names
    if sum((bool(names), bool(selector), every)) != 1:
        raise click.UsageError("name what to wait for: NAMES, -l SELECTOR or --all")
    return [asked(kind, each, namespace, selector) for each in names or [""]]
