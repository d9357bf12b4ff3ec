"""Connections that lie idle, over all clients of a process: so many, and for so long.

Each client would keep some, and a process keeps thousands of clients. So when there are too many
in all, those go first that were used least recently, whosever they are; and whoever lays one down
closes those that have lain for too long.
"""

from __future__ import annotations

import resource
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

MOST = 2_048
"""Idle connections of a process, where it may open enough files; each takes some 50 KB."""

SECONDS = 60.0
"""How long one may lie: longer, and load balancers will have forgotten it."""

_SHARE_OF_FILES = 0.25
"""Of the files that the process may open: stores and senders need theirs."""


class Connection(Protocol):
    """What is closed; it connects again when it is used again."""

    def close(self) -> None:
        """Close the socket."""
        ...


class Idle:
    """The idle connections; shared between threads.

    They are closed under the lock: who has taken one up is not disturbed.
    """

    def __init__(
        self,
        most: int | None = None,
        *,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._since: OrderedDict[Connection, float] = OrderedDict()

    def lay_down(self, connection: Connection) -> None:
        """Note that a connection is not used any more, and close those that are too many."""
        now = self._clock()
        with self._lock:
            self._most = self._most or _most()
            self._since[connection] = now
            self._since.move_to_end(connection)
            while len(self._since) > self._most or self._oldest() < now - self._seconds:
                self._since.popitem(last=False)[0].close()

    def take_up(self, connection: Connection) -> None:
        """Note that a connection is used from now on: until it is laid down nobody closes it."""
        with self._lock:
            self._since.pop(connection, None)

    def _oldest(self) -> float:
        return next(iter(self._since.values()))


IDLE = Idle()
"""Those of this process."""


def _most() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(1, min(MOST, int(files * _SHARE_OF_FILES)))
