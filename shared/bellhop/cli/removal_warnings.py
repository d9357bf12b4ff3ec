"""Warnings of commands that remove add-ons, or whose removals are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bellhop.cli.output import say
from bellhop.declarations.records import HeldRemoval

if TYPE_CHECKING:
    from bellhop.declarations.deletion_guard import RemovalPlan
    from bellhop.installation import Installation

_MOST = 10


def say_held(held: Sequence[HeldRemoval]) -> None:
    """Name the add-ons that a change would remove, and the command that removes them."""
    if not held:
        return
    from bellhop.diagnosis.held_deletions import describe_removal, group_by_change

    for each in held[:_MOST]:
        say(f"warning: {describe_removal(each)}", err=True)
    if len(held) > _MOST:
        say(f"warning: and {len(held) - _MOST} more lose add-ons", err=True)
    for change in group_by_change(held):
        say(
            "warning: they are held: nothing is removed. Take the change back, or remove them with"
            f" `{change.release}`",
            err=True,
        )


def say_plan(here: Installation, plan: RemovalPlan) -> None:
    """List all add-ons that a change would remove, and whether they would be held.

    Below each trigger and profile are the objects that its add-ons own, by cluster.
    """
    for removals, result in (
        (plan.held, "they would be held: nothing would be removed until it is released"),
        (plan.at_once, "they would be removed at once: the deletion guard would not hold them"),
    ):
        _say_planned(here, plan, removals, result)


def _say_planned(
    here: Installation, plan: RemovalPlan, removals: Sequence[HeldRemoval], result: str
) -> None:
    from bellhop.diagnosis.held_deletions import CLUSTERS, describe_removal, list_removed_objects

    for each in removals:
        say(f"warning: {describe_removal(each, most=CLUSTERS)}", err=True)
        for found in list_removed_objects(here, plan.addons[each.rule]):
            more = [f"and {found.more} more"] if found.more else []
            say(*(f"  {found.cluster}: {name}" for name in [*found.names, *more]), err=True)
    if removals:
        say(f"warning: {result}", err=True)
