"""`bellhop show`: what is deployed, what happened, and what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from bellhop.cli import output
from bellhop.cli.examples import Command, Group
from bellhop.cli.options import JSON, TABLE, YAML, output_option, state_option
from bellhop.cli.output import Column, say
from bellhop.cli.session import installation, looking
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.fleet.timeline import Filter
    from bellhop.model.record import Entry

_ADDONS = (
    Column("CLUSTER", "cluster"),
    Column("RESOURCE TYPE", "resourceType"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("VERSION", "version"),
    Column("TIME", "time", shown=lambda value: output.stamp(value) or "applying"),
    Column("DEPLOYMENT TYPE", "deploymentType"),
    Column("PROFILES", "profiles", shown=", ".join),
    Column("FROM", "from", wide=True),
)
_FAILURES = (
    Column("WHAT", "what", style="red"),
    Column("WHICH", "which"),
    Column("SINCE", "since", shown=lambda value: output.stamp(value) or "-"),
    Column("COUNT", "count", wide=True),
    Column("SENTENCE", "sentence", prose=True),
)
_STRAYS = (
    Column("CLUSTER", "cluster"),
    Column("OBJECT", "object"),
    Column("OF", "profile"),
    Column("SINCE", "since", shown=output.stamp),
)
_DURATION = re.compile(r"(\d+)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@click.group(
    "show",
    cls=Group,
    examples=("bellhop show addons", "bellhop show events --follow", "bellhop show failures"),
)
def command() -> None:
    """Show add-ons, events and failures."""


@command.command(
    "addons",
    cls=Command,
    examples=(
        "bellhop show addons --namespace prod --cluster eu-1",
        "bellhop show addons --profile ClusterProfile/kyverno -o json",
    ),
)
@click.option("--namespace", default="", help="Namespace of the clusters.")
@click.option("--cluster", default="", help="Name of the cluster.")
@click.option("--profile", default="", metavar="KIND/NAME", help="What one profile deployed.")
@output_option
@state_option
def addons(namespace: str, cluster: str, profile: str, form: str) -> None:
    """Show what is deployed where, and by which profile."""
    kind, slash, name = profile.rpartition("/")
    if slash and kind.lower() != "clusterprofile":
        raise InvalidError(
            f"cannot show what '{profile}' deployed: profiles are named ClusterProfile/NAME"
        )
    from bellhop.cli.addons import addons as found

    rows = found(installation(), namespace, cluster, name)
    output.present(_ADDONS, rows, form, nothing="No add-ons found.")


@command.command(
    "events",
    cls=Command,
    examples=(
        "bellhop show events --since 10m",
        "bellhop show events --follow --cluster prod/eu-1",
        "bellhop show events --trace 3f9a1c20 -o json",
    ),
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--since", help="How far back, as in 90s, 10m, 2h, 1d; else 1h, or now to follow.")
@click.option("--trace", default="", help="One event, by the beginning of its trace.")
@click.option("--cluster", default="", metavar="NAMESPACE/NAME", help="What concerns one cluster.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="How many lines, the last ones; 0 for all.",
)
@output_option
@state_option
def events(
    since: str | None, trace: str, cluster: str, limit: int, form: str, *, follow: bool
) -> None:
    """Show what rang, what it matched and rendered, and where that was applied.

    One block for each event, oldest first; with --follow or -o wide, line by line. JSON is one
    object a line.
    """
    from bellhop.cli import telling
    from bellhop.fleet import timeline

    here = installation()
    ago = _duration(since) if since else timedelta(hours=0 if follow else 1)
    wanted = timeline.Filter(trace, cluster)
    begin = timeline.beginning(here.records, ago)
    if follow:
        _follow(timeline.follow(here.records, begin, cluster), wanted, form)
        return
    # A block is told whole, though its event went from one cluster to another.
    one = "" if form == TABLE else cluster
    entries: Iterable[Entry]
    if limit:
        entries = timeline.last(here.records, begin, wanted, limit, one)
        if form != TABLE:
            entries = [entry for entry in entries if wanted.takes(entry)][-limit:]
    else:
        entries = (entry for _, entry in timeline.read(here.records, begin, one))
    if form == TABLE:
        told = False
        for block in timeline.blocks(entries, wanted):
            telling.tell(block)
            told = True
        if not told:
            say(f"No events found in the last {since or '1h'}.", err=True)
    elif form == YAML:
        output.records((timeline.row(each) for each in entries if wanted.takes(each)), form)
    else:
        _lines(entries, wanted, form)


def _follow(entries: Iterable[Entry], wanted: Filter, form: str) -> None:
    try:
        _lines(entries, wanted, form)
    except KeyboardInterrupt:
        # It is how following ends, not how it fails.
        say("", err=True)


def _lines(entries: Iterable[Entry], wanted: Filter, form: str) -> None:
    from bellhop.cli import telling

    tell = telling.tell_json if form == JSON else telling.tell_line
    for entry in entries:
        if wanted.takes(entry):
            tell(entry)


def _duration(text: str) -> timedelta:
    parts = _DURATION.findall(text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        raise InvalidError(f"cannot read '{text}' as a duration: write it like 90s, 10m or 1h30m")
    return timedelta(seconds=sum(int(number) * _SECONDS[unit] for number, unit in parts))


@command.command("failures", cls=Command, examples=("bellhop show failures",))
@output_option
@state_option
def failures(form: str) -> None:
    """Show all that is wrong now: clusters, triggers, evaluations, deployments, dead letters.

    One line for each cause, with how many follow from it. Clusters that were not reached within
    the last minute are called. It reads the state as it is, whether `bellhop serve` runs or not.
    """
    from bellhop.fleet.calling import silent
    from bellhop.fleet.failures import failures as found

    here = looking()
    rows = (
        {
            "what": each.what,
            "which": each.which,
            "since": each.at,
            "count": each.several,
            "sentence": each.sentence,
        }
        for each in found(here, silent(here))
    )
    output.present(_FAILURES, rows, form, nothing="Nothing is wrong.")


@command.command("strays", cls=Command, examples=("bellhop show strays --cluster prod/eu-1",))
@click.option("--cluster", default="", metavar="NAMESPACE/NAME", help="What is in one cluster.")
@output_option
@state_option
def strays(cluster: str, form: str) -> None:
    """Show what carries Bellhop's marks in clusters and no profile holds.

    A sweep finds what is of a kind that profiles hold, `bellhop sweep --full` also others of the
    usual kinds. `bellhop remove-strays` removes them.
    """
    from bellhop.fleet.overview import object_name
    from bellhop.fleet.strays import strays as found

    rows = (
        {
            "cluster": each.cluster,
            "object": object_name(each.key),
            "profile": each.finding.profile,
            "since": each.finding.since,
        }
        for each in found(installation(), cluster)
    )
    output.present(_STRAYS, rows, form, nothing="No strays found.")
