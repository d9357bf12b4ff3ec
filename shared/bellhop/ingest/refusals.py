"""Recorder of requests in a cluster's name with a token that is not its own.

A state restored from before a registration refuses the cluster's own forwarder, which people must
see. Unauthenticated clients can send requests, too: so only existing clusters are counted, and each
is written at most once a minute.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from bellhop.errors import BellhopError
from bellhop.state.ingest_policy import Refusals
from bellhop.state.records import Records

_EVERY = timedelta(minutes=1)


class Refused:
    """Refusals that one process has counted and not written yet; shared between threads."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._written: dict[str, datetime] = {}

    def note(self, cluster: str) -> None:
        """Count a request that was refused in the name of a cluster that exists."""
        now = self._records.clock.now()
        with self._lock:
            self._counts[cluster] = self._counts.get(cluster, 0) + 1
            # A clock that was set back must not silence this.
            if abs(now - self._written.get(cluster, now - _EVERY)) < _EVERY:
                return
            self._written[cluster] = now
            count = self._counts.pop(cluster)
        try:
            old = self._records.refusals.get(cluster)
            since, before = (old.value.since, old.value.count) if old else (now, 0)
            self._records.refusals.put(cluster, Refusals(before + count, since, now))
        except BellhopError:
            # The sender is refused all the same; the next one is counted again.
            return


class Throttle:
    """Allows an action once in a while for each cluster; shared between threads."""

    def __init__(self, pause: timedelta) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._last: dict[str, datetime] = {}

    def try_begin(self, cluster: str, now: datetime) -> bool:
        """Return whether the action is allowed now, and count it as done."""
        with self._lock:
            last = self._last.get(cluster)
            # A clock that was set back must not end this for good.
            if last is not None and timedelta(0) <= now - last < self._pause:
                return False
            self._last[cluster] = now
            return True
