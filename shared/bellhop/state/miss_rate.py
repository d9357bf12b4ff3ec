"""How much of what sweeps looked at the push had missed, counted for at most a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

TALLIED = timedelta(hours=12)
"""A tally is of so long; two are kept, so that what is counted is at most a day old."""


class Tally(Struct, frozen=True):
    """What sweeps of a while looked at, from `since` on, and how much of it the push had missed."""

    since: datetime
    seen: int = 0
    missed: int = 0


def tallied(tallies: Sequence[Tally], now: datetime, seen: int, missed: int) -> tuple[Tally, ...]:
    """Count what a sweep looked at, and leave out what is older than a day.

    A tally of the future was begun by a clock that was ahead, and is left out as well.
    """
    kept = [each for each in tallies if timedelta(0) <= now - each.since < 2 * TALLIED]
    if not kept or now - kept[-1].since >= TALLIED:
        kept.append(Tally(now))
    last = kept[-1]
    kept[-1] = Tally(last.since, last.seen + seen, last.missed + missed)
    return tuple(kept[-2:])
