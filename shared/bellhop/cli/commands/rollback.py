"""`bellhop rollback`: have a profile hold what it held before, whatever is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bellhop.cli import session
from bellhop.cli.examples import Command
from bellhop.cli.options import state_option
from bellhop.cli.output import say
from bellhop.cli.queries import profile_argument, profile_or_trigger
from bellhop.errors import PermanentError

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation


@click.command(
    "rollback",
    cls=Command,
    usage=(
        "PROFILE [--to REVISION]",
        "PROFILE --end",
    ),
    examples=(
        "bellhop rollback kyverno",
        "bellhop rollback kyverno --to 3",
        "bellhop rollback kyverno --end",
    ),
)
@profile_argument
@click.option(
    "--to",
    "number",
    metavar="REVISION",
    type=click.IntRange(min=1),
    help="Number of the revision; by default the previous one.",
)
@click.option(
    "--end",
    "--undo",
    "undo",
    is_flag=True,
    help="Return to the applied manifest; --undo is the former name.",
)
@state_option
def command(profile: str, number: int | None, *, undo: bool) -> None:
    """Deploy a former revision of a profile to all its clusters, and keep it there.

    Without --to it is the previous revision. It stays, whatever is applied and whatever happens,
    until --end, or until the profile is withdrawn. `bellhop history` lists the revisions. PROFILE
    is the NAME of a ClusterProfile, the NAMESPACE/NAME of a Profile, or KIND NAME, as in
    `rolerequest NAME`. The name of a trigger means all profiles that it generated. `bellhop serve`
    or the functions do this; the command requests it.
    """
    from bellhop.diagnosis.names import Titled, made_by, meant

    if undo and number:
        raise click.UsageError("say --to or --end, not both")
    here = session.installation()
    name, trigger = profile_or_trigger(here, profile)
    if trigger and number:
        raise click.UsageError("--to goes with one profile: each has revisions of its own")
    if not trigger:
        _roll(here, name, meant(here, name), number or 0, undo=undo)
    else:
        titled = Titled(here)
        _roll_each(here, {titled.shown(each): each for each in made_by(here, trigger)}, undo=undo)
    if not session.serves(here):
        say(f"warning: {here.worker.name} does not answer; it is done once it runs", err=True)


def _roll_each(here: Installation, ours: Mapping[str, str], *, undo: bool) -> None:
    """Roll back all that can be; one that holds nothing else keeps no other from it.

    Raises:
        PermanentError: none of them can be.
    """
    failed: list[PermanentError] = []
    for name, each in ours.items():
        try:
            _roll(here, name, each, 0, undo=undo)
        except PermanentError as error:
            failed.append(error)
    if len(failed) == len(ours):
        raise failed[0]
    for each_error in failed:
        say(f"warning: {each_error}", err=True)


def _roll(here: Installation, name: str, ours: str, number: int, *, undo: bool) -> None:
    from bellhop.operations import rollback

    rolled = rollback.undo(here, ours) if undo else rollback.rollback(here, ours, number)
    held = rolled.profile
    if undo:
        say(
            f"'{name}' follows its manifest again."
            if rolled.is_new
            else f"'{name}' follows its manifest already."
        )
    else:
        is_at = "Rolled '{}' back to" if rolled.is_new else "'{}' is rolled back already, to"
        say(
            f"{is_at.format(name)} revision {held.number}; it stays there until"
            f" `bellhop rollback {name} --end`."
        )
    if held.paused:
        say(f"warning: it is paused; `bellhop resume {name}` has clusters follow", err=True)
    if held.sync == "OneTime":
        say(
            "warning: its syncMode is OneTime: clusters that have it follow by"
            f" `bellhop redeploy {name}`",
            err=True,
        )
