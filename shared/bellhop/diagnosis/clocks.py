"""Whether time passes as it should: how this machine's clock jumped, and what is overdue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from bellhop.clusters.pause import pause_of
from bellhop.diagnosis import overview
from bellhop.installation.installation import Installation
from bellhop.installation.process import ProcessStatus, Ticking
from bellhop.state.delays import sweep_timer
from bellhop.state.record import WorkerHeartbeat
from bellhop.state.timers import SKEW, Timer

_RECENT = timedelta(hours=1)
"""How long a clock that jumped, and stayed there, counts as wrong: then it may be the one that was
put right."""

_LATE = timedelta(minutes=5)
"""What is due for longer is overdue: a schedule looks every minute at least."""

_MOST = 500
_SWEEPS = 3
"""Intervals after which a cluster that answers should have been swept."""


class Overdue(NamedTuple):
    """What should have happened by now: what it is, since when it is due, and a sentence."""

    which: str
    since: datetime | None
    sentence: str


def jump(here: Installation) -> str:
    """Tell of the last jump of the clock since `serve` began; empty if there was none."""
    pulse = here.records.pulses.get()
    if pulse is None or pulse.jumped_at is None:
        return ""
    way = "ahead" if pulse.jumped > 0 else "back"
    at = f"{pulse.jumped_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"jumped {way} by {_span(pulse.jumped)} at {at}; {_off(pulse)}"


def wrong_clock(here: Installation) -> tuple[datetime, str] | None:
    """Say that the clock jumped lately and has not come back, and when; None if that is not so."""
    pulse, now = here.records.pulses.get(), here.records.clock.now()
    if pulse is None or pulse.jumped_at is None or abs(now - pulse.jumped_at) > _RECENT:
        return None
    if abs(pulse.off) < SKEW.total_seconds():
        return None
    return pulse.jumped_at, f"it {jump(here)}; see what sets it, such as NTP, and which is right"


def overdue(here: Installation) -> Iterator[Overdue]:
    """Yield the timers that fired too late or never, and the clusters that nobody sweeps.

    Nothing where nobody works: that is told, and all else follows.
    """
    if isinstance(here.vitals, ProcessStatus) and not here.vitals.running:
        return
    if isinstance(here.vitals, Ticking) and overview.lateness(here):
        return
    now = here.records.clock.now()
    late = [
        due.timer.value
        for due in here.records.timers.due(now - SKEW, limit=_MOST)
        if due.counts and due.timer and _is_late(due.timer.value, now)
    ]
    if late:
        first = min(late, key=lambda each: each.at)
        yield Overdue(
            first.name,
            first.at,
            f"it is overdue by {_span((now - first.at).total_seconds())}, and"
            f" {len(late)} in all are: who publishes what is due does not; read its log",
        )
    for key in here.catalogs.known().clusters:
        yield from _unswept(here, key, now)


def _is_late(timer: Timer, now: datetime) -> bool:
    return now - timer.at > max(min(timer.at - timer.set_at, _LATE), SKEW)


def _unswept(here: Installation, key: str, now: datetime) -> Iterator[Overdue]:
    timer = here.records.timers.get(sweep_timer(key))
    longest = here.settings.sweep_interval * 1.1
    if timer is None:
        yield Overdue(f"sweep/{key}", None, "no resync is scheduled: the next hour schedules it")
    elif timer.value.at > now + longest + SKEW:
        yield Overdue(
            f"sweep/{key}",
            timer.value.at,
            f"the next resync is scheduled for {timer.value.at:%Y-%m-%d %H:%M} UTC, later than its"
            " interval: a clock that was ahead scheduled it, and the next hour corrects it;"
            f" `bellhop resync {key}` starts one now",
        )
    health, cluster = here.records.health.get(key).value, here.records.clusters.get(key)
    paused = cluster is not None and pause_of(cluster.value, now) is not None
    if health.state != "Healthy" or health.swept_at is None or paused:
        return
    if now - health.swept_at > longest * _SWEEPS + _LATE:
        yield Overdue(
            f"sweep/{key}",
            health.swept_at,
            "no resync of it has ended since then: see what waits in the queues, and the log",
        )


def _off(pulse: WorkerHeartbeat) -> str:
    if abs(pulse.off) < SKEW.total_seconds():
        return "since then it is where it would be without jumps"
    way = "ahead of" if pulse.off > 0 else "behind"
    return f"it is {_span(pulse.off)} {way} where it would be without jumps"


def _span(seconds: float) -> str:
    whole = round(abs(seconds))
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} seconds"
