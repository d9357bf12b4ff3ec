"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class FakeClock:
    """What time a test says it is; it never goes back."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""
        with self._lock:
            return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move on and return the new time."""
        if by < timedelta(0):
            message = "time does not go back"
            raise ValueError(message)
        with self._lock:
            self._now += by
            return self._now

    @contextmanager
    def behind(self, by: timedelta) -> Iterator[None]:
        """Be another machine's clock for a while, one that is behind."""
        with self._lock:
            self._now -= by
        try:
            yield
        finally:
            with self._lock:
                self._now += by
