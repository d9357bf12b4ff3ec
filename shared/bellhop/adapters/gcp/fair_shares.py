"""Fair shares of a process: when it is nearly full, no fairness key has more than half of it."""

from __future__ import annotations

import threading
from collections import Counter

_FULL = 0.75
"""From this part of its places on a process is nearly full."""

Key = tuple[str, str]
"""An inbox and a share."""


class FairShares:
    """The places of one process, shared between its inboxes and threads.

    It also counts the messages that this process has put into the line of a share.
    """

    def __init__(self, places: int) -> None:
        self._most = max(places // 2, 1)
        self._full = max(int(places * _FULL), 2)
        self._in_flight: Counter[Key] = Counter()
        self._lines: Counter[Key] = Counter()
        self._lock = threading.Lock()

    @property
    def places(self) -> int:
        """Say how many places are left before the process is nearly full."""
        return self._full - self._in_flight.total()

    @property
    def full(self) -> bool:
        """Say if the process is nearly full."""
        return self.places <= 0

    def enter(self, key: Key) -> bool:
        """Take a place; False if the share has enough, and others may need it."""
        with self._lock:
            if self.full and self._in_flight[key] >= self._most:
                return False
            self._in_flight[key] += 1
            return True

    def leave(self, key: Key) -> None:
        """Release the place."""
        with self._lock:
            self._in_flight[key] -= 1
            if not self._in_flight[key]:
                del self._in_flight[key]

    def free(self, key: Key) -> bool:
        """Say if one of the share could enter."""
        with self._lock:
            return not self.full or self._in_flight[key] < self._most

    def queue_up(self, key: Key) -> None:
        """Note that one more stands in line."""
        with self._lock:
            self._lines[key] += 1

    def line(self, key: Key) -> int:
        """Say how many were sent into the line since it was known to be empty."""
        with self._lock:
            return self._lines[key]

    def forget(self, key: Key, seen: int) -> None:
        """Note that a line is empty, unless somebody was sent into it meanwhile."""
        with self._lock:
            if self._lines[key] == seen:
                del self._lines[key]
