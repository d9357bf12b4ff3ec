"""Loops: what a trigger brings changes, by way of a source, what it is made from.

     an object ─► its profile, turn 1 ─► what it brings: somebody else's object ─► turn 2 ─► …

Each profile notes how many turns led to it: one more than that which brought the object it is made
from, and one where no profile did. So a chain counts its links, what an object's owner does counts
nothing, and only what comes back to itself counts on. The number lies in the records, with the
profile, and is found by the owner of the object: any process knows it, in any cluster, and nothing
is written into clusters for it. A mark on what is applied would itself be a change, which whoever
copies annotations would bring round again.

It is a bucket that leaks: sixteen turns come at once, and then one a minute. Nobody has to tell
who wrote the object last: people who edit what is theirs and ours, less than once a minute, are
never slowed, and a loop that ends is forgotten by itself. Turns that were counted before something
was declared count no more, so that a corrected trigger or source is not delayed. A change of
clusters forgets no turn: in a fleet there may be one each second.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from bellhop.state.record import Profile

MOST = 16
"""Turns that come at once: chains that end are shorter."""

PACE = timedelta(minutes=1)
"""What comes beyond these comes once in so long."""

CURE = "leave out of its template what changes each time, or what is applied out of its source"
"""What to do about a loop."""

_SHOWN = 2
"""Turns below the most at which a loop is still spoken of: it has just had its turn."""


class LoopCounts(NamedTuple):
    """How many turns led to what is to be made, and since when; `by` brought the last one."""

    times: int
    since: datetime
    by: str = ""

    def wait(self, now: datetime) -> timedelta:
        """Return how long the next turn is to wait, at most a minute; zero where it need not."""
        left = PACE * (self.times - MOST + 1) - self._passed(now)
        return min(max(left, timedelta(0)), PACE)

    def level(self, now: datetime) -> float:
        """Return how many turns are not forgotten yet."""
        return self.times - self._passed(now) / PACE

    def _passed(self, now: datetime) -> timedelta:
        """Return how long it is going on; a clock that was ahead must not hold this for long."""
        return max(now - self.since, timedelta(0))


def led_by(makers: Iterable[Profile], declared: str, now: datetime) -> LoopCounts:
    """Return the turns of a profile made from objects of these, under the rules `declared`."""
    known = (
        LoopCounts(each.turns, each.turning, each.trigger)
        for each in makers
        if each.turning is not None and each.turned_by == declared
    )
    return max((each for each in known if each.level(now) > 0), default=LoopCounts(0, now))


def is_slowed(profile: Profile, declared: str, now: datetime) -> bool:
    """Say whether a profile is one turn of a loop that goes on."""
    return led_by([profile], declared, now).level(now) > MOST - _SHOWN


def told(trigger: str, source: str, turns: LoopCounts, now: datetime) -> str:
    """Say what a loop is, and what to do about it."""
    way = f", through trigger '{turns.by}'" if turns.by not in ("", trigger) else ""
    took = round((now - turns.since).total_seconds())
    return (
        f"trigger '{trigger}' feeds itself{way}: what is applied changes what source '{source}'"
        f" matches, {turns.times} times in {took} s; it is made once a minute from now on; {CURE}"
    )
