"""Heartbeat of an installation: a process that cannot write to the store has none."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from bellhop.state.table import Table
from bellhop.state.timers import SKEW

GAP = timedelta(minutes=5)
"""Functions whose schedule was silent for longer have begun again."""

DOUBT = timedelta(days=1)
"""How long nothing expires by a clock that jumped ahead."""


class WorkerHeartbeat(Struct, frozen=True):
    """The last heartbeat of an installation: of its one process, or of the schedule that ticks.

    The process began at `since`, and wrote this `at`; it is of a `version`. Its clock `jumped` last
    by so many seconds, ahead or back, at a time; all jumps since it began together are `off`. The
    oldest work that was `pending` then waits since that time.
    """

    since: datetime
    at: datetime
    version: str = ""
    jumped_at: datetime | None = None
    jumped: float = 0.0
    off: float = 0.0
    pending: datetime | None = None


class WorkerHeartbeats(Table[WorkerHeartbeat]):
    """The one heartbeat of an installation."""

    kind = WorkerHeartbeat
    partition, sort = "pulse", "serve"

    def get(self) -> WorkerHeartbeat | None:  # type: ignore[override]
        """Read the heartbeat; None if there never was one."""
        kept = super().get()
        return kept.value if kept else None

    def doubts(self, now: datetime) -> bool:
        """Say whether the clock jumped ahead less than a day ago, and has not come back.

        Records that would be deleted for good since they expired wait for that long.
        """
        last = self.get()
        if last is None or last.jumped_at is None or last.off < SKEW.total_seconds():
            return False
        return now - last.jumped_at < DOUBT

    def tick(
        self, before: WorkerHeartbeat | None, now: datetime, version: str, pending: datetime | None
    ) -> None:
        """Write the heartbeat of a schedule, which keeps nothing in memory between two ticks.

        Of two at once one stays. The oldest pending work waits since `pending`.
        """
        goes_on = before is not None and now - before.at < GAP
        since = before.since if before and goes_on else now
        self.put(WorkerHeartbeat(since, now, version, pending=pending))
