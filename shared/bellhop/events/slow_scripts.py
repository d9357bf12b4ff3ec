"""Which sources' scripts take long, as one process knows: from what it saw, and from the records.

a script exceeds its first slice ─► the object is judged apart, patiently
three times in a row ─► noted: judged apart at once, by whatever process
it ends within the slice, when judged apart ─► forgotten
the source is written otherwise ─► begins afresh
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from bellhop.logs import Log
from bellhop.state.records import Records

_OFTEN = 3
_FRESH = timedelta(seconds=5)
"""How long what the records say is believed: an event asks the store for nothing."""


class ScriptThrottle:
    """What is known of sources' pace; shared between threads."""

    def __init__(self, records: Records, log: Log) -> None:
        self._records = records
        self._log = log
        self._lock = threading.Lock()
        self._exceeded: dict[str, tuple[str, int]] = {}
        self._slow: Mapping[str, str] = {}
        self._read_at: datetime | None = None

    def is_slow(self, source: str, digest: str) -> bool:
        """Say whether a source, as it is written, takes long again and again."""
        now = self._records.clock.now()
        with self._lock:
            if self._read_at is None or not timedelta(0) <= now - self._read_at < _FRESH:
                self._read_at = now
                self._slow = {each.source: each.digest for each in self._records.paces.all()}
            return self._slow.get(source) == digest

    def exceeded(self, source: str, digest: str) -> None:
        """Count that a source took too long; note it when it did so again and again."""
        with self._lock:
            known = self._slow.get(source) == digest
            was, times = self._exceeded.get(source, ("", 0))
            times = times + 1 if was == digest else 1
            self._exceeded[source] = digest, times
            if not known and times < _OFTEN:
                return
            self._slow = {**self._slow, source: digest}
            del self._exceeded[source]
        if self._records.paces.slow(source, digest, times):
            self._log.warning("Judges a source apart, as its script takes long", source=source)

    def ended(self, source: str, digest: str) -> None:
        """Note that a source's script ended in its first slice."""
        with self._lock:
            self._exceeded.pop(source, None)
            if self._slow.get(source) != digest:
                return
            self._slow = {name: each for name, each in self._slow.items() if name != source}
        self._records.paces.quick(source)
