"""Recorder of steps for the event log: the result of each, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from bellhop.errors import BellhopError, InvalidError
from bellhop.state.event_log import Entry
from bellhop.state.records import Records

_LONGEST = 2048
"""Characters of a line's detail: a profile may have changed ten thousand objects."""


class Origin(Protocol):
    """A message that says which event it comes from, and when its cluster noticed."""

    @property
    def trace(self) -> str:
        """The event's mark."""
        ...

    @property
    def event_at(self) -> str:
        """When the cluster noticed, in ISO 8601; empty where no event was the cause."""
        ...


class Nobody(Struct, frozen=True):
    """The origin of work that no event caused: a resync, an applied manifest."""

    trace: str = ""
    event_at: str = ""


@dataclass
class Note:
    """A line in the making: the step fills in what it finds out; an empty `what` is not noted.

    `before` are milliseconds that the step took before it was noted.
    """

    what: str = ""
    detail: str = ""
    before: float = 0.0
    context: dict[str, Any] = field(default_factory=dict)

    def fail(self, step: str, error: BellhopError | str) -> None:
        """Note that a step failed; a sentence in place of an error is about an invalid input."""
        reason = InvalidError.code if isinstance(error, str) else error.code
        self.what, self.detail = "failed", str(error)
        self.context = {**self.context, "step": step, "reason": reason}


@contextmanager
def noting(records: Records, origin: Origin, cluster: str, key: str) -> Iterator[Note]:
    """Time a step and note it, also when it fails; `origin` has the event's trace."""
    note = Note()
    begun = time.perf_counter()
    try:
        yield note
    finally:
        if note.what:
            took = note.before + (time.perf_counter() - begun) * 1000
            write(records, origin, cluster, key, note, took)


def write(
    records: Records, origin: Origin, cluster: str, key: str, note: Note, took: float = 0.0
) -> None:
    """Write a line; where the time of the event is known, the line says how long ago it was."""
    now = records.clock.now()
    context = dict(note.context)
    if origin.event_at:
        since = now - datetime.fromisoformat(origin.event_at)
        context["since_ring_ms"] = round(since.total_seconds() * 1000, 1)
    records.ledger.note(
        Entry(
            at=now,
            trace=origin.trace,
            what=note.what,
            cluster=cluster,
            object=key,
            detail=note.detail if len(note.detail) <= _LONGEST else note.detail[:_LONGEST] + " …",
            took_ms=round(took, 2),
            context=context,
        )
    )
