"""Contention with another writer: consecutive corrections, and the delay before the next one.

    put back ─► changed again ─► put back ─► … four times ─► 10 s ─► 20 s ─► … ─► 15 minutes

A correction that lasts for long enough ends the contention: the next one is made at once. So the
edits of a colleague are corrected without delay, and an operator that reverts every correction
costs one write in a quarter of an hour. A number and a time are stored with the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from bellhop.core.identity import MANAGER
from bellhop.state.deployment import Held

AT_ONCE = 4
"""Times in a row that something is put back without a pause."""

FIRST = timedelta(seconds=10)
LONGEST = timedelta(minutes=15)
_PEACE = timedelta(minutes=10)
"""For so long at least it stays as it was put back."""

_PEACE_PAUSES = 4
"""And for so many pauses: one that is being waited for is none."""

_LONGEST_NAME = 64


def times(held: Held, now: datetime) -> int:
    """Return how often an object was put back in a row."""
    if held.mended_at is None:
        return 0
    quiet = now - held.mended_at
    return 0 if quiet > max(_PEACE, pause(held.mended) * _PEACE_PAUSES) else held.mended


def pause(often: int) -> timedelta:
    """Return how long what was put back so often in a row is left before the next time."""
    if often < AT_ONCE:
        return timedelta(0)
    doublings = min(often - AT_ONCE, 16)
    return min(FIRST * (1 << doublings), LONGEST)


def wait(held: Held, now: datetime) -> timedelta:
    """Return how long an object is still left as others have written it; nothing is no wait."""
    often = times(held, now)
    if not often or held.mended_at is None:
        return timedelta(0)
    left = held.mended_at + pause(often) - now
    # A clock that was ahead must not hold this for long.
    return min(max(left, timedelta(0)), pause(often))


def writer(there: Mapping[str, Any] | None) -> str:
    """Name the other field manager that wrote last to an object; empty if that is unknown."""
    found = ((there or {}).get("metadata") or {}).get("managedFields")
    others = [
        (str(each.get("time") or ""), str(each.get("manager") or ""))
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, Mapping)
        and each.get("manager") not in (None, "", MANAGER)
        and each.get("subresource") != "status"
    ]
    _, name = max(others, default=("", ""))
    return "".join(letter if letter.isprintable() else " " for letter in name)[:_LONGEST_NAME]
