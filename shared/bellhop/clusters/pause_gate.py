"""Clusters that are paused: nothing is changed in them, and what happens in them makes nothing.

    asked to change one ─► paused? ─► outcome says so ─► is it still? ─► it waits
    resumed by hand:   record is written ─► all that was asked for there is asked for again
    its window opens:  the timer that was set before the outcome asks again

Who waits looks again after that is noted; who resumes a cluster looks for those who wait after its
record is written. So one of the two sees the other. Nobody has to be awake when a window opens.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop.clusters.pause import Pause, pause_of
from bellhop.deploy.context import ReconcileContext
from bellhop.errors import PausedError, StaleError, TemporaryError
from bellhop.state.delays import opening_timer
from bellhop.state.messages import Instantiate
from bellhop.state.record import Cluster
from bellhop.state.records import Records

_SOON = timedelta(seconds=5)
"""Openings that are so near are left to the queue: clocks need not agree that it is not yet."""


class Pauses:
    """Keeps off clusters that are paused."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def refuse(self, work: ReconcileContext) -> None:
        """Keep a cluster from being changed while it is paused.

        Raises:
            PausedError: it is.
        """
        pause = pause_of(work.cluster, self._records.clock.now())
        if pause is None:
            return
        does = ("deploy", "to") if work.wanted else ("withdraw", "from")
        raise PausedError(
            f"cannot {does[0]} '{work.profile.shown}' {does[1]} '{work.cluster.key}' yet: the"
            f" cluster {pause}",
            until=pause.until,
        )

    def look_again(self, work: ReconcileContext, error: PausedError) -> None:
        """See whether who tells those that wait could see by now that we do.

        Raises:
            StaleError: the cluster is not paused any more, or otherwise, or is not there.
            TemporaryError: its window is about to open.
        """
        now, kept = self._records.clock.now(), self._records.clusters.get(work.cluster.key)
        if kept is None or pause_of(kept.value, now) != Pause(error.until):
            raise StaleError(f"cannot wait for '{work.cluster.key}': it is not paused as it was")
        _leave_to_the_queue(str(error), error.until, now)

    def keeps_from(self, trigger: str, cluster: Cluster) -> bool:
        """Say whether events of a cluster make nothing for a trigger as long as it is paused.

        Whoever resumes it has all of it asked for again; a window does so when it opens.

        Raises:
            TemporaryError: its window is about to open.
        """
        now = self._records.clock.now()
        pause = pause_of(cluster, now)
        if pause is None:
            return False
        if pause.until:
            name = opening_timer(trigger, cluster.key)
            _leave_to_the_queue(f"cluster '{cluster.key}' {pause}", pause.until, now)
            timer = self._records.timers.get(name)
            if timer is None or timer.value.at != pause.until:
                again = Instantiate(trigger, cluster.key).message()
                self._records.timers.set(name, pause.until, again.body)
        return True


def _leave_to_the_queue(said: str, until: datetime | None, now: datetime) -> None:
    if until and until - now <= _SOON:
        raise TemporaryError(said, delay=until - now)
