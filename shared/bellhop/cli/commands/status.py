"""`bellhop status`: the health of the installation on one screen, and its problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bellhop import __version__
from bellhop.cli import output
from bellhop.cli.command import Command
from bellhop.cli.contexts import EMBEDDED
from bellhop.cli.options import JSON, YAML, output_option
from bellhop.cli.output import Column, format_age, format_count, say
from bellhop.cli.session import choose_context, open_read_only
from bellhop.errors import BellhopError, MissingError

if TYPE_CHECKING:
    from bellhop.diagnosis.condition import Condition
    from bellhop.diagnosis.status import ClusterStatus, Status
    from bellhop.ports.queue import Backlog

NOT_COMPARED = (
    "Deployed objects are not compared here: the next resync finds deleted ones, and `bellhop diff"
    " PROFILE --live` every change."
)
"""The note beside no problem: changes by others to deployed objects are not reported."""

WRONG = 1
"""The exit code where anything is wrong."""

_SHOWN = 10
CLUSTERS = (
    Column("CLUSTER", "cluster"),
    Column("STATE", "state"),
    Column("HEARTBEAT", "heard"),
    Column("REACHED", "reached"),
    Column("MISSED", "missed"),
    Column("WAITING", "waiting"),
    Column("FAILING", "failing"),
)


@click.command("status", cls=Command, examples=("bellhop status", "bellhop status -o json"))
@output_option
def command(form: str) -> None:
    """Show the health of the installation on one screen: workers, clusters, queues and problems.

    Nothing is changed, and it works while `bellhop serve` is stopped and on a full disk. Clusters
    that were not reached within the last minute are called. The exit code is 1 if there is a
    problem or the state cannot be read.
    """
    from bellhop.diagnosis.status import read_status

    try:
        here = open_read_only()
        found, now = read_status(here), here.records.clock.now()
    except MissingError:
        raise
    except BellhopError as error:
        _report_unreadable(error, form)
        raise click.exceptions.Exit(WRONG) from error
    if form in {JSON, YAML}:
        output.print_objects([make_document(found)], form, one=True)
    else:
        _print_status(found, now, form)
    raise click.exceptions.Exit(WRONG if found.failures else 0)


def _report_unreadable(error: BellhopError, form: str) -> None:
    """Report an installation whose records cannot be read."""
    from bellhop.cli.providers.provider import load_provider

    context = choose_context()
    running = None
    # Where its folder is not there either, the first error is the one to mend.
    with suppress(BellhopError):
        running = load_provider(context).is_running(context)
    if form in {JSON, YAML}:
        what = "state" if context.kind == EMBEDDED else "installation"
        wrong = [{"what": what, "which": context.where, "sentence": str(error)}]
        document = {"well": False, "running": running, "failures": wrong}
        output.print_objects([document], form, one=True)
        return
    if running is not None:
        say(f"bellhop serve   {'runs' if running else 'does not run'}")
    say(f"error: {error}", err=True)


def _print_status(found: Status, now: datetime, form: str) -> None:
    name, how = ("schedule", _ticks) if found.functions else ("bellhop serve", _process)
    say(f"{name:<16}{how(found, now)}{_version(found)}")
    if found.clock:
        say(f"clock           {found.clock}")
    say(f"declared        {_declared(found)}")
    say(f"deployments     {found.deployed} of {found.deployments} Provisioned")
    say(f"queues          {_queues(found, now)}")
    for line in _delayed(found):
        say(f"delayed         {line}")
    if found.pending:
        say(f"oldest pending  for {format_age(found.pending, now)}, late or retried")
    say(f"dead letters    {found.dead or 'none'}")
    if found.paused:
        say(f"paused          {_paused(found.paused)}")
    say("")
    rows = (_make_row(each, now) for each in found.clusters)
    output.print_table(CLUSTERS, rows, form, nothing="No cluster is registered.")
    say("")
    _print_problems(found)


def _declared(found: Status) -> str:
    numbers = {"EventSource": found.sources, "trigger": found.triggers, "profile": found.profiles}
    return ", ".join(format_count(number, noun) for noun, number in numbers.items())


def _print_problems(found: Status) -> None:
    for each in found.failures[:_SHOWN]:
        since = f" (since {output.format_time(each.since)})" if each.since else ""
        say(f"{each.type} {each.about}{since}: {each.message}")
    if len(found.failures) > _SHOWN:
        say(f"`bellhop show failures` lists all {len(found.failures)}.")
    if not found.failures:
        but = ", but not everything is active: see `paused`" if found.paused else ""
        if any(_delayed(found)):
            but = ", but some work failed and is tried again: see `delayed`"
        say(f"No problem is known{but}. {NOT_COMPARED if found.deployments else ''}".rstrip())


def _paused(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}; `bellhop resume` ends that"


def _process(found: Status, now: datetime) -> str:
    at = f"last at work {format_age(found.worked_at, now)} ago" if found.worked_at else ""
    if found.running:
        since = f" since {output.format_time(found.since)}" if found.since else ""
        return ", ".join(filter(None, (f"runs{since}", at)))
    return ", ".join(("does not run", at or "and never did"))


def _ticks(found: Status, now: datetime) -> str:
    at = f"last tick {format_age(found.worked_at, now)} ago" if found.worked_at else "never did"
    return f"{'ticks' if found.running else 'does not tick'}, {at}"


def _version(found: Status) -> str:
    """Return the version of the worker if it is not that of this command."""
    other = found.version not in ("", __version__)
    return f"; it is {found.version}, and this command {__version__}" if other else ""


def _queues(found: Status, now: datetime) -> str:
    parts = [
        f"{format_count(each.waiting, 'message')} in {name}{_span(each, now)}"
        for name, each in found.queues.items()
        if each.waiting
    ]
    held = sum(each.held for each in found.queues.values())
    parts += [f"{held} being worked on"] if held else []
    return ", ".join(parts) or "nothing waits"


def _delayed(found: Status) -> Iterator[str]:
    """Yield the messages of each queue that failed and are tried again, with the first reason."""
    for name, each in found.queues.items():
        if each.delayed:
            why = f": {each.reason}" if each.reason else ""
            yield f"{format_count(each.delayed, 'message')} in {name}, tried again soon{why}"


def _span(each: Backlog, now: datetime) -> str:
    return f" for {format_age(each.since, now)}" if each.since else ""


def _make_row(each: ClusterStatus, now: datetime) -> dict[str, Any]:
    return {
        "cluster": each.key,
        "state": each.state,
        "heard": format_age(each.heard_at, now) if each.beats else "-",
        "reached": format_age(each.reached_at, now),
        "missed": f"{each.missed}/{each.seen}" if each.rings else "-",
        "waiting": each.waiting,
        "failing": each.failing,
    }


def make_document(found: Status) -> dict[str, Any]:
    """Return a status as `bellhop status -o json` prints it."""
    return {
        "well": not found.failures,
        "running": found.running,
        "version": found.version,
        "since": found.since,
        "worked": found.worked_at,
        "clock": found.clock,
        "sources": found.sources,
        "triggers": found.triggers,
        "profiles": found.profiles,
        "deployments": found.deployments,
        "deployed": found.deployed,
        "paused": list(found.paused),
        "queues": {
            name: {
                "waiting": each.waiting,
                "held": each.held,
                "since": each.since,
                "delayed": each.delayed,
                "reason": each.reason,
            }
            for name, each in found.queues.items()
        },
        "oldestPending": found.pending,
        "deadLetters": found.dead,
        "clusters": [
            {
                "cluster": each.key,
                "state": each.state,
                "heard": each.heard_at,
                "reached": each.reached_at,
                "missed": each.missed,
                "observed": each.seen,
                "countedSince": each.counted_since,
                "waiting": each.waiting,
                "failing": each.failing,
                "deployed": each.deployed,
                "deployments": each.deployments,
            }
            for each in found.clusters
        ],
        "failures": list(_make_failures(found.failures)),
    }


def _make_failures(found: Sequence[Condition]) -> Iterator[dict[str, Any]]:
    for each in found:
        yield {
            "what": each.type,
            "which": each.about,
            "since": each.since,
            "count": each.count,
            "sentence": each.message,
        }
