"""Retry errors that may pass in a moment, and let one of several fail while the others are done.

Clients of clouds retry by themselves, some for more than a minute; Bellhop switches that off.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bellhop.errors import BellhopError, BusyError, ThrottledError, UnreachableError

TRIES = 5
PASSING = (ThrottledError, UnreachableError, BusyError)
"""Errors that are retried at once, a few times: they may pass in a moment."""

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


class Failures:
    """The errors of several steps, by name; shared between threads."""

    def __init__(self) -> None:
        self._failed: list[tuple[str, Exception]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._failed]

    @contextmanager
    def isolated(self, name: str) -> Iterator[None]:
        """Note the error of a block, and go on after it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the others go on
            self._failed.append((name, error))

    def end(self) -> None:
        """Raise the first error, if there is one."""
        for _, error in self._failed:
            raise error
