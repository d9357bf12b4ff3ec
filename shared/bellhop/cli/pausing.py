"""What `bellhop pause` and `bellhop resume` have in common."""

from __future__ import annotations

import click

from bellhop.cli import session
from bellhop.cli.asking import profile_named
from bellhop.cli.completing import complete_paused
from bellhop.cli.output import say

_TRIGGER = "trigger"

what_argument = click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="PROFILE | trigger NAME",
    shell_complete=complete_paused,
)


def mark(words: tuple[str, ...], done: str, value: str | None) -> None:
    """Pause what is meant, or without a value have it go on, and say so."""
    from bellhop.fleet.pausing import mark, pausable
    from bellhop.fleet.titled import meant

    here = session.installation()
    trigger, profile = _read(words)
    key = pausable(here, trigger, meant(here, profile))
    is_new = mark(here, key, value) != "unchanged"
    say(f"{key.kind} '{key.place}' {done if is_new else f'is {done} already'}.")


def _read(words: tuple[str, ...]) -> tuple[str, str]:
    """Read which trigger or which profile is meant, and leave the other one empty."""
    first, *others = words
    if first == _TRIGGER and len(others) == 1:
        return others[0], ""
    if others or first == _TRIGGER:
        raise click.UsageError("name one profile, or `trigger` and its name")
    return "", profile_named(first)
