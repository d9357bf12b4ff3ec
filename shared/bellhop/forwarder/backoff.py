"""How long to wait after a failure: twice as long each time, and never in step with others."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 15.0
_DOUBLINGS = 10

ATTEMPTS = 10
SPAN_SECONDS = 3600.0
"""So many failed attempts over so long a time show that an item is never taken."""

SLOWER = 20
"""How much longer an item waits than a sender, since it holds up no other: up to five minutes."""


def pause(failures: int, *, at_least: float = 0.0) -> float:
    """Return the seconds to wait after so many failures in a row, counted from 1."""
    longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures, _DOUBLINGS))
    return max(at_least, random.uniform(longest / 2, longest))  # noqa: S311 - guards no secret


@dataclass(slots=True)
class Attempts:
    """Failed attempts to send one item, and when the next one is due; times are monotonic."""

    failed: int = 0
    since: float = 0.0
    due: float = 0.0

    @property
    def are_exhausted(self) -> bool:
        """Say if there were so many, for so long, that no other is made."""
        return self.failed >= ATTEMPTS and time.monotonic() - self.since >= SPAN_SECONDS

    def fail(self) -> None:
        """Count a failed attempt; the next one is due after a pause that grows."""
        now = time.monotonic()
        self.since = self.since or now
        self.failed += 1
        self.due = now + SLOWER * pause(self.failed)
