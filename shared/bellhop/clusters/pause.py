"""Pauses and maintenance windows of clusters, computed from a cluster's record and the time.

Nothing has to run when a window opens or closes: a worker asks before it writes to the cluster.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from bellhop.core.windows import Window, find_opening, is_open, next_times
from bellhop.errors import TemporaryError
from bellhop.state.cluster import Cluster
from bellhop.state.delays import opening_timer
from bellhop.state.messages import Instantiate
from bellhop.state.records import Records

_SOON = timedelta(seconds=5)
"""Openings that are so near are left to the queue: clocks may differ."""


class Pause(NamedTuple):
    """That a cluster is paused: `until` its window opens, or without a time until it is resumed."""

    until: datetime | None

    def __str__(self) -> str:
        """Say so, in words that follow the name of the cluster."""
        if self.until is None:
            return "is paused until `bellhop resume`"
        return f"is paused until {self.until:%Y-%m-%d %H:%M} UTC, when its maintenance window opens"


def window_in(cluster: Cluster) -> Window | None:
    """Return the window in which a cluster is active; None for one that always is."""
    window = cluster.spec.get("activeWindow")
    return Window(window["from"], window["to"]) if window else None


def pause_of(cluster: Cluster, now: datetime) -> Pause | None:
    """Return the pause of a cluster that is in one: by hand, or since its window is closed."""
    if cluster.spec.get("paused"):
        return Pause(None)
    window = window_in(cluster)
    if window is None or is_open(window, now):
        return None
    return Pause(find_opening(window, now))


def describe_pause(cluster: Cluster, now: datetime) -> str:
    """Return whether a cluster is paused, and until when, in words that follow its name."""
    pause, window = pause_of(cluster, now), window_in(cluster)
    if pause:
        return str(pause)
    if window is None:
        return "is active at any time"
    closes = next_times(window, now).closes
    return f"is active until {closes:%Y-%m-%d %H:%M} UTC, when its window closes"


class Pauses:
    """Holds events of paused clusters back until these are resumed, or their windows open."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def keeps_from(self, trigger: str, cluster: Cluster) -> bool:
        """Return whether a cluster is paused, so that its events have no effect for a trigger.

        Resuming the cluster publishes all of them again, and so does an opening window.

        Raises:
            TemporaryError: its window is about to open.
        """
        now = self._records.clock.now()
        pause = pause_of(cluster, now)
        if pause is None:
            return False
        if pause.until:
            name = opening_timer(trigger, cluster.key)
            leave_to_the_queue(f"cluster '{cluster.key}' {pause}", pause.until, now)
            timer = self._records.timers.get(name)
            if timer is None or timer.value.at != pause.until:
                again = Instantiate(trigger, cluster.key).message()
                self._records.timers.set(name, pause.until, again.body)
        return True


def leave_to_the_queue(said: str, until: datetime | None, now: datetime) -> None:
    """Raise a TemporaryError with a text if a window opens within the delay of a retry."""
    if until and until - now <= _SOON:
        raise TemporaryError(said, delay=until - now)
