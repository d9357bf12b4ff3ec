"""`bellhop rollback` and `bellhop history`: the revisions of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from bellhop.cli import session
from bellhop.cli.command import Command
from bellhop.cli.completion import complete_stage
from bellhop.cli.output import Column, Row, format_time, say
from bellhop.cli.printer import Printer, printer_options
from bellhop.cli.queries import (
    PROMOTION,
    check_stage,
    profile_argument,
    resolve_profile_or_trigger,
)
from bellhop.cli.session import open_installation
from bellhop.errors import PermanentError

if TYPE_CHECKING:
    from bellhop.installation import Installation


@click.command(
    "rollback",
    cls=Command,
    usage=(
        "PROFILE [--to REVISION]",
        "PROFILE --end",
        "promotion NAME --stage STAGE [--to RELEASE | --end]",
    ),
    examples=(
        "bellhop rollback kyverno",
        "bellhop rollback kyverno --to 3",
        "bellhop rollback kyverno --end",
        "bellhop rollback promotion agent --stage production",
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
@click.option(
    "--stage",
    metavar="STAGE",
    default="",
    help="Stage of a promotion.",
    shell_complete=complete_stage,
)
def command(profile: str, number: int | None, stage: str, *, undo: bool) -> None:
    """Deploy a former revision of a profile to all its clusters, and keep it there.

    Without --to it is the previous revision. It stays, whatever is applied and whatever happens,
    until --end, or until the profile is withdrawn. `bellhop history` lists the revisions. PROFILE
    is the NAME of a ClusterProfile, the NAMESPACE/NAME of a Profile, or KIND NAME, as in
    `rolerequest NAME`. The name of a trigger means all profiles that it generated. `bellhop serve`
    or the functions do this; the command requests it.
    """
    from bellhop.diagnosis.names import ProfileNames, list_trigger_profiles, resolve_profile

    if undo and number:
        raise click.UsageError("say --to or --end, not both")
    here = session.open_installation()
    kind, _, promotion = profile.partition("/")
    check_stage(is_promotion=kind == PROMOTION, stage=stage)
    if stage:
        _roll_stage(here, promotion, stage, number or 0, undo=undo)
        session.warn_unless_served(here)
        return
    name, trigger = resolve_profile_or_trigger(here, profile)
    if trigger and number:
        raise click.UsageError("--to goes with one profile: each has revisions of its own")
    if not trigger:
        _roll(here, name, resolve_profile(here, name), number or 0, undo=undo)
    else:
        titled = ProfileNames(here)
        _roll_each(
            here,
            {titled.shown(each): each for each in list_trigger_profiles(here, trigger)},
            undo=undo,
        )
    session.warn_unless_served(here)


def _roll_stage(here: Installation, promotion: str, stage: str, number: int, *, undo: bool) -> None:
    from bellhop.cli.session import find_caller
    from bellhop.operations.promotions import end_rollback, roll_back

    by = find_caller(here)
    if undo:
        found = end_rollback(here, promotion, by=by, stage=stage)
        has = "gets release {} again" if found.is_new else "is not rolled back: it has release {}"
        say(f"Stage '{stage}' of promotion '{promotion}' {has.format(found.release)}.")
    else:
        found = roll_back(here, promotion, by=by, stage=stage, release=number)
        has = "returns to release {}" if found.is_new else "has release {} already"
        say(
            f"Stage '{stage}' of promotion '{promotion}' {has.format(found.release)}; it stays"
            f" there until a newer one comes, or `bellhop rollback promotion {promotion} --stage"
            f" {stage} --end`."
        )
    session.warn_if_paused(here, promotion)


def _roll_each(here: Installation, ours: Mapping[str, str], *, undo: bool) -> None:
    """Roll back each profile that has another revision; fail only if none has one."""
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


COLUMNS = (
    Column("REVISION", "revision"),
    Column("RENDERED", "rendered", shown=lambda value: format_time(value) or "-"),
    Column("REPLACED", "replaced", shown=lambda value: format_time(value) or "-"),
    Column("STATE", "state", shown=lambda value: value or "-"),
    Column("CHANGED", "changed", shown=lambda value: value or "-"),
)


@click.command(
    "history",
    cls=Command,
    usage=("PROFILE", "promotion NAME"),
    examples=("bellhop history kyverno", "bellhop history promotion agent -o json"),
)
@profile_argument
@printer_options(headers=False)
def history(*, profile: str, printer: Printer) -> None:
    """List the stored revisions of a profile in the order of time; the current one is the last.

    Each has its number, when it was rendered and replaced, and which manifests differ from those of
    the one before. A revision is the result of one state of the manifests: the profile or trigger,
    its source, and the ConfigMaps and Secrets that it names. Changes by events create no new
    revision. The setting BELLHOP_REVISIONS is the number of former revisions that are kept. PROFILE
    is the NAME of a ClusterProfile, the NAMESPACE/NAME of a Profile, or KIND NAME, as in
    `rolerequest NAME`. The name of a trigger means all profiles that it generated.
    """
    from bellhop.diagnosis.names import ProfileNames, list_trigger_profiles, resolve_profile
    from bellhop.operations.rollback import list_revisions

    here = open_installation()
    kind, _, promotion = profile.partition("/")
    if kind == PROMOTION:
        _print_releases(here, promotion, printer)
        return
    name, trigger = resolve_profile_or_trigger(here, profile)
    titled = ProfileNames(here)

    def rows() -> Iterator[Row]:
        for ours in (
            list_trigger_profiles(here, trigger) if trigger else [resolve_profile(here, name)]
        ):
            named = {"profile": titled.shown(ours)} if trigger else {}
            yield from ({**named, **row} for row in rows_of(ours))

    def rows_of(ours: str) -> Iterator[Row]:
        for each in list_revisions(here, ours):
            in_force = "rolled back" if each.pinned else "in force"
            yield {
                "revision": each.number,
                "rendered": each.made_at,
                "replaced": each.until,
                "state": "" if each.until else in_force,
                "changed": each.why,
            }

    columns = (Column("PROFILE", "profile"), *COLUMNS) if trigger else COLUMNS
    printer.present(columns, rows(), nothing="No revisions found.")


def _print_releases(here: Installation, name: str, printer: Printer) -> None:
    from bellhop.cli.views.promotions import HISTORY, list_history
    from bellhop.diagnosis.promotion_status import read_promotion
    from bellhop.operations.promotions import find_promotion

    status = read_promotion(here, find_promotion(here, name))
    printer.present(HISTORY, list_history(here, status), nothing="No releases found.")
