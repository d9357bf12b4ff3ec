"""A paused cluster is not changed: its profiles wait until it is resumed, or its window opens.

    a plan has something to change ─► paused? ─► status says so ─► is it still? ─► it waits
    resumed by hand:   record is written ─► all that waits there is published again
    its window opens:  the timer that was set before the status publishes the message again

A worker reads the cluster again after it wrote the status; `bellhop resume` reads the statuses
after it wrote the cluster. So one of the two sees the other. Nothing has to run when a window
opens.
"""

from __future__ import annotations

from bellhop.clusters.pause import Pause, leave_to_the_queue, pause_of
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.gates.gate import Gate
from bellhop.errors import PausedError, StaleError
from bellhop.state.records import Records


class PauseGate(Gate):
    """Has a profile wait while its cluster is paused."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def check(self, context: ReconcileContext) -> None:
        """Refuse a paused cluster.

        Raises:
            PausedError: the cluster is paused, `until` its window opens or it is resumed.
        """
        pause = pause_of(context.cluster, self._records.clock.now())
        if pause is None:
            return
        does = ("deploy", "to") if context.is_destination else ("withdraw", "from")
        raise PausedError(
            f"cannot {does[0]} '{context.profile.shown}' {does[1]} '{context.cluster.key}' yet: the"
            f" cluster {pause}",
            until=pause.until,
        )

    def recheck(self, context: ReconcileContext, error: PausedError) -> None:
        """Read again whether the cluster is paused as the status says.

        Raises:
            StaleError: the cluster is not paused any more, or otherwise, or is not there.
            TemporaryError: its window is about to open.
        """
        cluster, now = context.cluster.key, self._records.clock.now()
        kept = self._records.clusters.get(cluster)
        if kept is None or pause_of(kept.value, now) != Pause(error.until):
            raise StaleError(f"cannot wait for '{cluster}': it is not paused as it was")
        leave_to_the_queue(str(error), error.until, now)
