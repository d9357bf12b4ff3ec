"""Try again what may pass in a moment: how often, with which pauses, and until when.

Clouds' own clients repeat in ways of their own, some for a minute and more; they are told not to.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from bellhop.errors import BellhopError, BusyError, ThrottledError, UnreachableError

TRIES = 5
PASSING = (ThrottledError, UnreachableError, BusyError)
"""What is tried again at once, a few times: it may be gone in a moment."""

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

T = TypeVar("T")


class Attempts:
    """Calls that are repeated; none begins later than `last` seconds after the first."""

    def __init__(
        self,
        last: float,
        *,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._last = last
        self._seconds = seconds
        self._sleep = sleep

    def make(
        self,
        once: Callable[[], T],
        failures: tuple[type[Exception], ...],
        translate: Callable[[Exception], BellhopError],
    ) -> T:
        """Return what `once` does, or raise what `translate` makes of the last of its failures."""
        last = self._seconds() + self._last
        for number in range(1, TRIES + 1):
            try:
                return once()
            except failures as error:
                ours = translate(error)
                late = self._seconds() > last
                if late or number == TRIES or not isinstance(ours, PASSING):
                    raise ours from error
            self.rest(number)
        raise AssertionError

    def rest(self, number: int) -> None:
        """Rest after so many attempts: twice as long at most each time, so that who met part."""
        longest = min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE)
        # Functions that begin from one snapshot have drawn the same otherwise.
        self._sleep(random.SystemRandom().uniform(0, longest))
