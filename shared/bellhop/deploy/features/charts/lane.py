"""Keeps workers free while calls of Helm last long: for hooks, tests, or Helm's own wait.

A profile that has no place waits for a timer. When a call ends, the first profile that may have
its place is published at once: most calls end long before that timer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from bellhop.deploy.context import ReconcileContext
from bellhop.errors import BellhopError, QueuedError
from bellhop.ports.clock import Clock
from bellhop.state.messages import Apply, Publisher

MOST = 2
"""Calls that may last long at once in one process; an inbox with Helm has more workers."""

_PAUSE = timedelta(seconds=10)


class Lane:
    """Places for calls of Helm that may last long; one cluster has one of them at most."""

    def __init__(self, clock: Clock, publisher: Publisher) -> None:
        self._clock = clock
        self._publisher = publisher
        self._lock = threading.Lock()
        self._clusters: set[str] = set()
        self._waiting: dict[str, Apply] = {}

    @contextmanager
    def enter(self, context: ReconcileContext, *, holds: bool) -> Iterator[None]:
        """Have a place for a call that `holds` its worker; any other needs none.

        Raises:
            QueuedError: there is none, and nothing was begun.
        """
        if not holds:
            yield
            return
        cluster = context.cluster.key
        with self._lock:
            self._refuse(context)
            self._clusters.add(cluster)
        try:
            yield
        finally:
            with self._lock:
                self._clusters.remove(cluster)
                following = self._following()
            # The timer has it published, too.
            with suppress(BellhopError):
                self._publisher.publish(following)

    def _following(self) -> list[Apply]:
        """Return the message of the first profile that may have a place now, and forget it."""
        for group, message in self._waiting.items():
            if message.destination not in self._clusters:
                return [self._waiting.pop(group)]
        return []

    def _refuse(self, context: ReconcileContext) -> None:
        cluster, message = context.cluster.key, context.message
        if cluster in self._clusters:
            where = "in this cluster"
        elif len(self._clusters) >= MOST:
            where = "in other clusters"
        else:
            self._waiting.pop(message.group, None)
            return
        self._waiting[message.group] = message
        raise QueuedError(
            f"waiting until Helm has ended with another release {where}: it may take long, since"
            " the chart has hooks or tests, or is rolled back or cleaned up if it fails",
            until=self._clock.now() + _PAUSE,
        )
