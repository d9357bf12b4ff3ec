"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class FakeClock:
    """What time a test says it is; it goes back only where a test has it `jump`, or be `behind`."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._steady = start - datetime(1970, 1, 1, tzinfo=UTC)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def steady(self) -> timedelta:
        """Return the time that has passed, whatever the clock was set to."""
        with self._lock:
            return self._steady

    def boot(self) -> str:
        """Return the id of a machine that never boots again."""
        return "fake"

    def jump(self, by: timedelta) -> None:
        """Be set ahead, or back, while no time passes."""
        with self._lock:
            self._now += by

    def advance(self, by: timedelta) -> datetime:
        """Move on and return the new time."""
        if by < timedelta(0):
            message = "time does not go back"
            raise ValueError(message)
        with self._lock:
            self._now += by
            self._steady += by
            return self._now

    @contextmanager
    def behind(self, by: timedelta) -> Iterator[None]:
        """Be another machine's clock for a while, one that is behind."""
        self.jump(-by)
        try:
            yield
        finally:
            self.jump(by)


class TickingClock(FakeClock):
    """A clock that moves a little with each look, as any does: no two things happen at once."""

    def now(self) -> datetime:
        """Return the time, a microsecond later than the last time."""
        return self.advance(timedelta.resolution)


class Hand:
    """A clock's hand that a test moves: seconds, for what takes a function instead of a clock."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at
