"""How long to wait after a failure: twice as long each time, and never in step with others."""

from __future__ import annotations

import random

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 15.0
_DOUBLINGS = 10


def pause(failures: int, *, at_least: float = 0.0) -> float:
    """Return the seconds to wait after so many failures in a row, counted from 1."""
    longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures, _DOUBLINGS))
    return max(at_least, random.uniform(longest / 2, longest))  # noqa: S311 - guards no secret
