"""Warnings of commands that remove add-ons, or whose removals are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bellhop.cli.output import say
from bellhop.model.removal import HeldRemoval

if TYPE_CHECKING:
    from bellhop.stages.removals import RemovalPlan

_MOST = 10
_CLUSTERS = 10
"""Clusters that a dry run names for each trigger and profile."""


def say_held(held: Sequence[HeldRemoval]) -> None:
    """Name the add-ons that a change would remove, and the command that removes them."""
    if not held:
        return
    from bellhop.fleet.changes import described, grouped

    for each in held[:_MOST]:
        say(f"warning: {described(each)}", err=True)
    if len(held) > _MOST:
        say(f"warning: and {len(held) - _MOST} more lose add-ons", err=True)
    for change in grouped(held):
        say(
            "warning: they are held: nothing is removed. Take the change back, or remove them with"
            f" `{change.release}`",
            err=True,
        )


def say_plan(plan: RemovalPlan) -> None:
    """List the add-ons that a change would remove, all of them, and whether they would be held."""
    for removals, result in (
        (plan.held, "they would be held: nothing would be removed until it is released"),
        (plan.at_once, "they would be removed at once: the deletion guard would not hold them"),
    ):
        _say_planned(removals, result)


def _say_planned(removals: Sequence[HeldRemoval], result: str) -> None:
    from bellhop.fleet.changes import described

    for each in removals:
        say(f"warning: {described(each, most=_CLUSTERS)}", err=True)
    if removals:
        say(f"warning: {result}", err=True)
