"""Rate limiter of one process for what it writes into the configuration cluster.

    message ─► few writes lately ─► handled, its writes counted
               else ─► a place in line, and the message comes again at its time
    429 ─► nobody begins before Retry-After; the rate falls, and recovers with each write

A place is only a time in this process: a message without one, after a restart or in another
process, gets one. Times are monotonic.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from datetime import timedelta
from itertools import takewhile
from typing import Any, cast

from bellhop.errors import ThrottledError
from bellhop.ports.kube import Access, Kube

REQUESTS_A_SECOND = 50
_LEAST_A_SECOND = 5.0
_BURST = 1.0
"""Seconds of writes that may be made at once."""

_USUAL = 2
"""Writes of a message: an object, and its status."""

_SLOWDOWN, _RECOVERY = 1.5, 1.01
_LONGEST_DELAY = 600.0
_KEPT = 60.0
"""Seconds for which a place is kept that nobody comes for: another process may have handled it."""

_WRITES = frozenset({"apply", "apply_status", "merge", "merge_status", "remove"})


class WriteLimiter:
    """Spreads messages over time, by the writes that they turn out to make."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._rate = float(REQUESTS_A_SECOND)
        self._places: dict[Hashable, float] = {}
        self._last = self._free_at = self._blocked_until = float("-inf")

    def admit(self, work: Hashable) -> None:
        """Admit a piece of work, or give it a place in line.

        Raises:
            ThrottledError: it has to wait for its place.
        """
        with self._lock:
            now = self._seconds()
            self._forget(now)
            place = self._places.get(work)
            if place is None or (place <= now < self._blocked_until):
                if now >= self._blocked_until and self._free_at - now <= _BURST:
                    return
                place = self._take_place(work, now)
            elif place <= now:
                del self._places[work]
                return
        delay = timedelta(seconds=min(place - now, _LONGEST_DELAY))
        raise ThrottledError("many objects of the configuration are written just now", delay=delay)

    def count(self) -> None:
        """Count a request that writes."""
        with self._lock:
            self._rate = min(self._rate * _RECOVERY, REQUESTS_A_SECOND)
            self._free_at = max(self._free_at, self._seconds()) + 1 / self._rate

    def slow_down(self, delay: timedelta | None) -> None:
        """Have nobody begin for as long as the API server asks, and write less often then."""
        with self._lock:
            now = self._seconds()
            pause = (delay or timedelta(seconds=1)).total_seconds()
            if now >= self._blocked_until:
                # Requests that were in flight are refused together, and count once.
                self._rate = max(self._rate / _SLOWDOWN, _LEAST_A_SECOND)
            self._blocked_until = max(self._blocked_until, now + pause)

    def _take_place(self, work: Hashable, now: float) -> float:
        self._last = max(self._last, self._free_at, self._blocked_until, now) + _USUAL / self._rate
        self._places.pop(work, None)
        self._places[work] = self._last
        return self._last

    def _forget(self, now: float) -> None:
        """Forget places that nobody came for; they are in the order of their times."""
        ended = takewhile(lambda each: each[1] < now - _KEPT, self._places.items())
        for work, _ in list(ended):
            del self._places[work]


class LimitedAccess:
    """Clients of clusters whose writes a limiter counts, and whose refusals it obeys."""

    def __init__(self, access: Access, limiter: WriteLimiter) -> None:
        self._access = access
        self._limiter = limiter

    def open(self, cluster: str, *, version: str = "", account: str = "") -> Kube:
        found = self._access.open(cluster, version=version, account=account)
        return cast("Kube", _LimitedKube(found, self._limiter))

    def kubeconfig(self, cluster: str, *, version: str = "", account: str = "") -> bytes:
        return self._access.kubeconfig(cluster, version=version, account=account)


class _LimitedKube:
    """A client of one cluster."""

    def __init__(self, kube: Kube, limiter: WriteLimiter) -> None:
        self._kube = kube
        self._limiter = limiter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._kube, name)
        if name not in _WRITES:
            return found

        def write(*arguments: Any, **named: Any) -> Any:
            self._limiter.count()
            try:
                return found(*arguments, **named)
            except ThrottledError as error:
                self._limiter.slow_down(error.delay)
                raise

        return write
