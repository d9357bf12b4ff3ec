"""Requests that came in a cluster's name with a token that is not its own: counted, and kept.

A state that was restored from before a registration refuses the cluster's own forwarder; whoever
looks at the cluster must be told. Strangers can make requests, too: so only clusters that exist
are counted, and each is written at most once a minute, whatever comes.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from bellhop.errors import BellhopError
from bellhop.state.record import Refusals
from bellhop.state.records import Records

_EVERY = timedelta(minutes=1)


class Refused:
    """What one process has refused and not written yet; shared between threads."""

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
