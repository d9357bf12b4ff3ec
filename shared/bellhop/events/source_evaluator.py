"""Evaluation of an object by one source, with a throttle of slow scripts.

The throttle uses what one process saw, and the records:

  a script exceeds its first slice ─► its object is evaluated apart, from the inbox `patient`
  three times in a row ─► recorded: every process evaluates it apart at once
  it ends within the slice when evaluated apart ─► the record is deleted
  the source is changed ─► counting begins again
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from bellhop import celbox, luabox
from bellhop.api.kinds import EventSource
from bellhop.catalog.catalog import Catalog
from bellhop.core.gvk import ObjectKey
from bellhop.errors import ScriptError
from bellhop.events.access_reviews import may_see
from bellhop.events.rules_match import Candidate, SlowScriptError, evaluate_rules, state_digest
from bellhop.logs import Log
from bellhop.settings import Settings
from bellhop.state.messages import Evaluate as Message
from bellhop.state.records import Records

_OFTEN = 3
_FRESH = timedelta(seconds=5)
"""Time for which the records are cached, so that an event reads none."""
_LONGEST = 1024
"""Characters of a script's message that are stored."""


class Result(Struct, frozen=True):
    """Result of a source for an object, or the error of its script; `took` is in milliseconds."""

    source: EventSource
    candidate: Candidate | None
    matching: bool = False
    message: str = ""
    error: str = ""
    took: float = 0
    late: bool = False
    """The script needs more time than this message gives."""
    unknown: bool = False
    """There is no access review of the source's account for the object."""

    @property
    def open(self) -> bool:
        """Return whether another message evaluates it."""
        return self.late or self.unknown

    @property
    def leaves(self) -> bool:
        """Return whether there is to be a match, if only for its error."""
        return self.matching or bool(self.error)

    @property
    def digest(self) -> str:
        assert self.candidate is not None
        return state_digest(self.source, self.candidate)


class SourceEvaluator:
    """Evaluates objects by sources; shared between threads."""

    def __init__(self, records: Records, settings: Settings, log: Log) -> None:
        self._records = records
        self.limits = luabox.Limits(seconds=settings.script_seconds, memory=settings.script_memory)
        first = min(settings.script_first_seconds, settings.script_seconds)
        self._first = self.limits._replace(seconds=first)
        self._throttle = ScriptThrottle(records, log)

    def evaluate(
        self, catalog: Catalog, source: EventSource, candidate: Candidate | None, message: Message
    ) -> Result:
        sees = self._sees(source, candidate, message)
        if not sees:
            return Result(source, candidate, unknown=sees is None)
        # Asking the kernel for the thread's time takes as long as evaluating a label filter.
        begun, used = time.perf_counter(), celbox.thread_time() if source.scripted else 0.0
        digest = catalog.digest(source.name)
        limits: luabox.Limits | None = self.limits
        if source.scripted and not message.source:
            limits = None if self._throttle.is_slow(source.name, digest) else self._first
        matching, said, error, run, late = False, "", "", False, False
        try:
            ruling = evaluate_rules(source, candidate, limits)
            matching, said, run = ruling.matching, ruling.message[:_LONGEST], ruling.run
        except SlowScriptError as failure:
            late = limits != self.limits
            error = "" if late else str(failure)
        except ScriptError as failure:
            error = str(failure)
        if used and limits and celbox.thread_time() - used > self._first.seconds:
            self._throttle.exceeded(source.name, digest)
        elif run:
            self._throttle.ended(source.name, digest)
        took = (time.perf_counter() - begun) * 1000
        return Result(source, candidate, matching, said, error, took, late)

    def _sees(
        self, source: EventSource, candidate: Candidate | None, message: Message
    ) -> bool | None:
        """Return whether a source may see an object that exists; None if that is unknown."""
        if not source.account or candidate is None:
            return True
        key = ObjectKey.parse(message.object)
        return may_see(self._records, message.cluster, source.account, key, asked=message.asked)


class ScriptThrottle:
    """Counts slow runs of sources' scripts; shared between threads."""

    def __init__(self, records: Records, log: Log) -> None:
        self._records = records
        self._log = log
        self._lock = threading.Lock()
        self._exceeded: dict[str, tuple[str, int]] = {}
        self._slow: Mapping[str, str] = {}
        self._read_at: datetime | None = None

    def is_slow(self, source: str, digest: str) -> bool:
        """Return whether a source, as it is written, takes long again and again."""
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
