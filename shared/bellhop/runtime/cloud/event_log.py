"""The event log, written to the function's log as well: one line for each decision.

Each line has severity, message, time, what, cluster and object, and what is known of trace, ms,
detail, source, trigger, profile, and how long ago the cluster noticed. `read_line` reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from bellhop.logs import Log
from bellhop.ports.store import Store
from bellhop.state.event_log import Bounds, Entry, EventLog

SENTENCES = {
    "rang": "An object changed",
    "gone": "An object is gone",
    "missed": "A resync found changes without an event",
    "matched": "An object matches",
    "unmatched": "An object matches no more",
    "selected": "A script selected among what matches",
    "held": "Held what ended, since it was too much",
    "rendered": "Rendered a profile",
    "slowed": "Slowed a trigger that feeds itself",
    "withdrawn": "Withdrew a profile",
    "paused": "A profile is paused",
    "waits": "A profile waits for its cluster",
    "applied": "Applied a profile",
    "removed": "Removed a profile",
    "failed": "A step failed",
    "begins": "A stage begins to deploy a release",
    "promoted": "A release has passed a stage",
    "approved": "A release was approved",
    "rejected": "A release was rejected",
    "stalled": "A release is stopped at a stage",
    "rolled back": "A former release was deployed",
    "rollback ended": "A rollback has ended",
}
"""The message of a line, by its event."""

COUNTED: Mapping[str, str] = {
    "rang": "Events",
    "gone": "Events",
    "matched": "Matched",
    "unmatched": "Matched",
    "applied": "Applied",
    "removed": "Applied",
    "failed": "Failed",
    "missed": "Misses",
    "held": "Held",
    "waits": "Waits",
}
"""The metric of what happened."""

_OURS = ("what", "cluster", "object", "trace", "ms", "detail")
_BEFORE = ("severity", "message", "time")


class LoggedEventLog(EventLog):
    """An event log whose entries are logged when they are noted, even if the store fails."""

    def __init__(
        self,
        store: Store,
        bounds: Bounds,
        log: Log,
        count: Callable[[Entry], None] | None = None,
    ) -> None:
        super().__init__(store, bounds)
        self._log = log
        self._tally = count

    def note(self, entry: Entry) -> None:
        """Add a line, log it, and have it counted if somebody counts."""
        write = self._log.warning if entry.what == "failed" else self._log.info
        write(SENTENCES.get(entry.what, entry.what), **_fields(entry))
        if self._tally:
            self._tally(entry)
        super().note(entry)


def counted(entry: Entry) -> tuple[str, int] | None:
    """Return the metric of an entry, and by how much it grows; None for what is not counted.

    A resync reports several objects in one entry.
    """
    name = COUNTED.get(entry.what)
    return (name, int(entry.context.get("objects", 1))) if name else None


def _fields(entry: Entry) -> dict[str, Any]:
    """Write an entry as fields of which none is empty, and each always means the same."""
    context = dict(entry.context)
    if triggers := context.pop("triggers", None):
        context["trigger"] = ", ".join(triggers)
    fields = {
        "time": entry.at.isoformat(),
        "what": entry.what,
        "cluster": entry.cluster,
        "object": entry.object,
        "trace": entry.trace,
        "ms": entry.took_ms,
        "detail": entry.detail,
        **context,
    }
    return {name: value for name, value in fields.items() if value != ""}


def read_line(line: Mapping[str, Any], at: datetime, stage: str) -> Entry | None:
    """Read a line of ours as an entry; None if it is neither a decision nor an error.

    The event of an entry that is no decision is its severity: a warning, or an error.
    """
    if line.get("what"):
        return _decision(line, at)
    if line.get("severity") == "INFO":
        return None
    rest = {name: value for name, value in line.items() if name not in (*_BEFORE, "stack_trace")}
    fields = "".join(f", {name}: {value}" for name, value in rest.items() if name != "cluster")
    said = f"{line.get('message', '')}{fields}"
    cluster = str(line.get("cluster") or "")
    return trouble(at, stage, str(line["severity"]).lower(), said, cluster)


def trouble(at: datetime, stage: str, what: str, said: str, cluster: str = "") -> Entry:
    """Make an entry of what is no decision."""
    return Entry(at, "", what, cluster, "", said, context={"stage": stage})


def _decision(line: Mapping[str, Any], at: datetime) -> Entry:
    context = {name: each for name, each in line.items() if name not in (*_OURS, *_BEFORE)}
    try:
        at, took = datetime.fromisoformat(line["time"]), float(line.get("ms") or 0)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
    except (KeyError, TypeError, ValueError):
        took = 0.0
    what, cluster, key, trace, detail = (
        str(line.get(name) or "") for name in ("what", "cluster", "object", "trace", "detail")
    )
    return Entry(at, trace, what, cluster, key, detail, took, context)
