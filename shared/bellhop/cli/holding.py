"""What commands that change declarations say of the add-ons that are held because of them."""

from __future__ import annotations

from collections.abc import Sequence

from bellhop.cli.output import say
from bellhop.model.removal import HeldRemoval

_MOST = 10


def say_held(held: Sequence[HeldRemoval], *, dry: bool = False) -> None:
    """Name the add-ons that a change would remove, and the command that removes them."""
    if not held:
        return
    from bellhop.fleet.changes import described, grouped

    for each in held[:_MOST]:
        say(f"warning: {described(each)}", err=True)
    if len(held) > _MOST:
        say(f"warning: and {len(held) - _MOST} more lose add-ons", err=True)
    if dry:
        say("warning: they would be held: nothing would be removed until it is released", err=True)
        return
    for change in grouped(held):
        say(
            "warning: they are held: nothing is removed. Take the change back, or remove them with"
            f" `{change.release}`",
            err=True,
        )
