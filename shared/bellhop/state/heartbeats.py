"""When who does the work wrote last that it is there: who cannot write has no pulse."""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop.ports.store import Store
from bellhop.state.record import WorkerHeartbeat
from bellhop.state.table import Table
from bellhop.state.timers import SKEW

GAP = timedelta(minutes=5)
"""Functions whose schedule was silent for longer have begun anew."""

DOUBT = timedelta(days=1)
"""How long a clock that jumped ahead is not believed that something is over."""


class WorkerHeartbeats:
    """The pulse of an installation: of its one process, or of the schedule that ticks."""

    def __init__(self, store: Store) -> None:
        self._table = Table(store, WorkerHeartbeat)

    def get(self) -> WorkerHeartbeat | None:
        """Read the pulse; None if there never was one."""
        kept = self._table.get("pulse", "serve")
        return kept.value if kept else None

    def put(self, pulse: WorkerHeartbeat) -> None:
        """Write the pulse."""
        self._table.put("pulse", "serve", pulse)

    def doubts(self, now: datetime) -> bool:
        """Say whether the clock jumped ahead less than a day ago, and has not come back.

        What would be deleted for good because its time is over waits for that long.
        """
        pulse = self.get()
        if pulse is None or pulse.jumped_at is None or pulse.off < SKEW.total_seconds():
            return False
        return now - pulse.jumped_at < DOUBT

    def tick(
        self, before: WorkerHeartbeat | None, now: datetime, version: str, pending: datetime | None
    ) -> None:
        """Write the pulse for who remembers nothing between two ticks; of two at once one stays.

        The oldest pending work waits since `pending`.
        """
        goes_on = before is not None and now - before.at < GAP
        since = before.since if before and goes_on else now
        self.put(WorkerHeartbeat(since, now, version, pending=pending))
