"""Rests after work that takes long, so that a burst of changes is worked on a few times.

What comes first is worked on at once; what comes meanwhile waits, and is then one piece of work.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta

from bellhop.ports.clock import Clock

_TIMES = 3
"""What takes long rests so many times as long before it is worked on again."""

_LONGEST = timedelta(seconds=15)
"""A worker that was frozen while it worked keeps what is newer no longer than this."""


class Debounce:
    """What was worked on just now, as one process knows."""

    def __init__(self, clock: Clock, long: timedelta) -> None:
        self._clock = clock
        self._long = long
        self._rests: dict[Hashable, tuple[datetime, timedelta]] = {}

    def begin(self, place: Hashable, begun: datetime) -> None:
        """Let a piece of work rest that was begun then and is done now, if it took long."""
        now = self._clock.now()
        if now - begun > self._long:
            self._rests[place] = now, min((now - begun) * _TIMES, _LONGEST)

    def left(self, place: Hashable) -> timedelta | None:
        """Return how long a piece of work is still to rest; None if it need not."""
        ended, rest = self._rests.pop(place, (None, timedelta(0)))
        if ended is None:
            return None
        left = ended + rest - self._clock.now()
        # A clock that was ahead must not hold this for long.
        if not timedelta(0) < left <= rest:
            return None
        self._rests[place] = ended, rest
        return left
