"""The ledger, told to the log as well: one line for each decision, where people look for them.

Each line has severity, message, time, cluster, object, trace and ms, and what is known of source,
trigger or triggers, profile, and how long ago the cluster noticed.
"""

from __future__ import annotations

from bellhop.logs import Log
from bellhop.model.record import Entry
from bellhop.ports.store import Store
from bellhop.records.ledger import Bounds, Ledger

_SENTENCES = {
    "rang": "An object changed",
    "gone": "An object is gone",
    "matched": "An object matches",
    "unmatched": "An object matches no more",
    "held": "Held a deletion",
    "rendered": "Rendered a profile",
    "withdrawn": "Withdrew a profile",
    "waits": "A profile waits for its cluster",
    "applied": "Applied a profile",
    "removed": "Removed a profile",
    "failed": "A step failed",
}


class ToldLedger(Ledger):
    """A ledger whose lines are logged when they are noted, whatever becomes of the store."""

    def __init__(self, store: Store, bounds: Bounds, log: Log) -> None:
        super().__init__(store, bounds)
        self._log = log

    def note(self, entry: Entry) -> None:
        """Add a line, and log it."""
        told = self._log.warning if entry.what == "failed" else self._log.info
        fields = {
            "cluster": entry.cluster,
            "object": entry.object,
            "trace": entry.trace,
            "ms": entry.took_ms,
            "detail": entry.detail,
            **entry.context,
        }
        known = {name: value for name, value in fields.items() if value != ""}
        told(_SENTENCES.get(entry.what, entry.what), what=entry.what, **known)
        super().note(entry)
