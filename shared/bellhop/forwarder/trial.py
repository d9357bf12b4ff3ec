"""Who is to blame for a request that fails for no told reason: the way to ingest, or an item.

A request with many items fails: it may be each of them, or ingest is away. So what has failed with
others some times goes alone. That it fails alone is held against an item only where ingest took
something else just before; while ingest takes nothing at all, nothing is held against anybody,
however long that lasts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

ALONE_AFTER = 5
"""Failures after which an item goes alone: some seconds after the first."""

REFUSALS = 10
SPAN_SECONDS = 3600.0
"""So many refusals over so long a time show that an item is never taken."""

LONGEST_SECONDS = 300.0
"""The longest pause between two tries of an item that was refused."""

_DOUBLINGS = 10


@dataclass(slots=True)
class Trial:
    """What became of the requests with an object's item; a newer item of the object goes on."""

    failures: int = 0
    refusals: int = 0
    """How often it failed alone where ingest had just taken something else."""
    since: float = 0.0
    due: float = 0.0

    @property
    def alone(self) -> bool:
        """Say if it goes alone."""
        return self.failures >= ALONE_AFTER

    @property
    def blamed(self) -> bool:
        """Say if it was refused itself, so that its failures say nothing of the way to ingest."""
        return self.refusals > 0

    @property
    def over(self) -> bool:
        """Say if it was refused so often, and for so long, that it is tried no more."""
        return self.refusals >= REFUSALS and time.monotonic() - self.since >= SPAN_SECONDS

    def refuse(self) -> None:
        """Count a refusal of its own."""
        self.since = self.since or time.monotonic()
        self.refusals += 1

    def rest(self, at_least: float) -> None:
        """Have it wait, longer each time."""
        pause = min(LONGEST_SECONDS, 2.0 ** min(self.failures - ALONE_AFTER, _DOUBLINGS))
        self.due = time.monotonic() + max(pause, at_least)
