"""Keeps workers free while calls of Helm last long: for hooks, tests, or Helm's own wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from bellhop.errors import QueuedError
from bellhop.ports.clock import Clock

MOST = 2
"""Calls that may last long at once in one process; an inbox with Helm has more workers."""

_PAUSE = timedelta(seconds=10)


class Lane:
    """Places for calls of Helm that may last long; one cluster has one of them at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._clusters: set[str] = set()

    @contextmanager
    def enter(self, cluster: str, *, holds: bool) -> Iterator[None]:
        """Have a place for a call that `holds` its worker; any other needs none.

        Raises:
            QueuedError: there is none, and nothing was begun.
        """
        if not holds:
            yield
            return
        with self._lock:
            self._refuse(cluster)
            self._clusters.add(cluster)
        try:
            yield
        finally:
            with self._lock:
                self._clusters.remove(cluster)

    def _refuse(self, cluster: str) -> None:
        if cluster in self._clusters:
            where = "in this cluster"
        elif len(self._clusters) >= MOST:
            where = "in other clusters"
        else:
            return
        raise QueuedError(
            f"waiting until Helm has ended with another release {where}: it may take long, since"
            " the chart has hooks or tests, or is rolled back or cleaned up if it fails",
            until=self._clock.now() + _PAUSE,
        )
