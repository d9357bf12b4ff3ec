"""Notes for the ledger: what happened to an event, and how long each step took."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bellhop.model.record import Entry
from bellhop.records import Records

_LONGEST = 2048
"""Characters of a line's detail: a profile may have changed ten thousand objects."""


@dataclass
class Note:
    """A line in the making: the step fills in what it finds out; an empty `what` is not noted."""

    what: str = ""
    detail: str = ""
    context: dict[str, Any] = field(default_factory=dict)


@contextmanager
def noting(records: Records, body: Mapping[str, Any], cluster: str, key: str) -> Iterator[Note]:
    """Time a step and note it, also when it fails; `body` brings the event's trace."""
    note = Note()
    begun = time.perf_counter()
    try:
        yield note
    finally:
        if note.what:
            took = (time.perf_counter() - begun) * 1000
            write(records, body, cluster, key, note, took)


def write(
    records: Records, body: Mapping[str, Any], cluster: str, key: str, note: Note, took: float = 0.0
) -> None:
    """Write a line; where the ring's time is known, the line says how long ago it was."""
    now = records.clock.now()
    context = dict(note.context)
    if body.get("rang"):
        since = now - datetime.fromisoformat(body["rang"])
        context["since_ring_ms"] = round(since.total_seconds() * 1000, 1)
    records.ledger.note(
        Entry(
            at=now,
            trace=str(body.get("trace") or ""),
            what=note.what,
            cluster=cluster,
            object=key,
            detail=note.detail if len(note.detail) <= _LONGEST else note.detail[:_LONGEST] + " …",
            took_ms=round(took, 2),
            context=context,
        )
    )
