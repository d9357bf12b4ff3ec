"""Status of what does the work, a process or functions: its schedule, disk, clock and timers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from bellhop.clusters.pause import pause_of
from bellhop.diagnosis.condition import Condition, failed, failure, passed
from bellhop.installation import Installation, ProcessStatus, Ticking
from bellhop.state.delays import sweep_timer
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.timers import SKEW, Timer

WORKER_TIMEOUT = timedelta(seconds=90)
"""A process without a heartbeat for so long is stopped, or cannot write."""

TICK_TIMEOUT = timedelta(minutes=5)
"""A schedule without a tick for so long is switched off, or fails; it ticks each minute."""

_RECENT = timedelta(hours=1)
"""A clock counts as wrong for this time after a jump, which may have corrected it."""

_LATE = timedelta(minutes=5)
"""A timer is overdue after this time: a schedule looks every minute at least."""

_MAX_TIMERS = 500
_RESYNCS = 3
"""Intervals after which a healthy cluster should have been resynced."""

_MEBI = 1024 * 1024


def list_conditions(here: Installation) -> Iterator[Condition]:
    if isinstance(here.vitals, ProcessStatus):
        yield from _process_conditions(here, here.vitals)
    elif here.vitals and (late := describe_missed_ticks(here)):
        cure = (
            "resyncs, retries and renewals wait; see whether its schedule is switched on, and"
            " what its function logs (`bellhop logs --stage schedule`)"
        )
        since = _last_heartbeat(here)
        yield failure("schedule", here.vitals.name, f"{late}: {cure}", since=since)
    if jumped := find_clock_jump(here):
        at, message = jumped
        yield failure("clock", "this machine", message, since=at)
    yield from list_overdue(here)


def _process_conditions(here: Installation, process: ProcessStatus) -> Iterator[Condition]:
    since, space, folder = _last_heartbeat(here), process.room, str(process.folder)
    if space.problem:
        cure = "; free some space, and all goes on by itself" if space.full else "; free some space"
        begun = since if space.full else None
        yield failure("disk", str(space.folder), space.problem + cure, since=begun)
    message = ""
    if not process.running:
        message = (
            "`bellhop serve` does not run: no event is received, evaluated or deployed; start it"
        )
    elif _is_stalled(here, process):
        message = (
            "`bellhop serve` runs and has written nothing since then: it is stopped, or cannot"
            " write; its log says why, and a restart loses nothing"
        )
    if message:
        yield failure("serve", folder, message, since=since)


def check_worker(here: Installation, *, answers: bool) -> Iterator[Condition]:
    """Check the worker for `bellhop doctor`; `answers` says whether its listener does."""
    if isinstance(here.vitals, ProcessStatus):
        yield from _check_process(here, here.vitals, answers=answers)
    elif here.vitals:
        yield from _check_functions(here, answers=answers)


def _check_process(
    here: Installation, process: ProcessStatus, *, answers: bool
) -> Iterator[Condition]:
    if not process.running:
        yield failed("serve", "`bellhop serve` does not run", "start it")
    elif _is_stalled(here, process):
        said = f"it has written nothing since {_last_heartbeat(here):%Y-%m-%d %H:%M:%S} UTC"
        yield failed("serve", said, "read its log, and restart it")
    else:
        yield passed("serve", "it runs")
    if problem := process.room.problem:
        said = f"of the disk of '{process.folder}': {problem}"
        yield failed("disk", said, "free some space; all goes on by itself")
    else:
        free = process.room.free // _MEBI
        yield passed("disk", f"{free:,} MiB are free for '{process.folder}'")
    url = here.inbound.url
    if answers:
        yield passed("listener", f"it answers at {url}")
    elif process.running:
        cure = "see whether another address is to be advertised: `bellhop serve --advertise`"
        said = f"nobody answers at {url}, the URL that clusters use"
        said = said if url else "it has no address for clusters"
        yield failed("listener", said, cure)


def _check_functions(here: Installation, *, answers: bool) -> Iterator[Condition]:
    late, url = describe_missed_ticks(here), here.inbound.url
    if late:
        cure = "see whether it is switched on, and read `bellhop logs --stage schedule`"
        yield failed("schedule", late, cure)
    else:
        yield passed("schedule", "it ticks")
    if answers:
        yield passed("ingest", f"it answers at {url}")
    else:
        cure = "read `bellhop logs --stage ingest`, and see whether you may reach it from here"
        yield failed("ingest", f"nobody answers at {url or 'any address'}", cure)


def is_running(here: Installation) -> bool | None:
    """Return whether the worker runs; None where that cannot be seen."""
    if isinstance(here.vitals, Ticking):
        return not describe_missed_ticks(here)
    return here.vitals.running if here.vitals else None


def describe_missed_ticks(here: Installation) -> str:
    """Return a sentence if the schedule of functions does not tick, else nothing."""
    worker, now = here.records.pulses.get(), here.records.clock.now()
    if worker is None:
        return "the schedule has not ticked yet"
    if abs(now - worker.at) <= TICK_TIMEOUT:
        return ""
    return f"the schedule has not ticked since {worker.at:%Y-%m-%d %H:%M:%S} UTC"


def _is_stalled(here: Installation, process: ProcessStatus) -> bool:
    """Return whether the process has not written for a while, though its disk is not full."""
    at = _last_heartbeat(here)
    late = at is not None and abs(here.records.clock.now() - at) > WORKER_TIMEOUT
    return late and not process.room.full


def _last_heartbeat(here: Installation) -> datetime | None:
    worker = here.records.pulses.get()
    return worker.at if worker else None


def describe_clock_jump(here: Installation) -> str:
    """Return the last jump of the clock since `serve` began; empty if there was none."""
    worker = here.records.pulses.get()
    if worker is None or worker.jumped_at is None:
        return ""
    way = "ahead" if worker.jumped > 0 else "back"
    at = f"{worker.jumped_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"jumped {way} by {_format_span(worker.jumped)} at {at}; {_describe_offset(worker)}"


def find_clock_jump(here: Installation) -> tuple[datetime, str] | None:
    """Return when the clock jumped lately without coming back, and a sentence; else None."""
    worker, now = here.records.pulses.get(), here.records.clock.now()
    if worker is None or worker.jumped_at is None or abs(now - worker.jumped_at) > _RECENT:
        return None
    if abs(worker.off) < SKEW.total_seconds():
        return None
    said = f"it {describe_clock_jump(here)}; see what sets it, such as NTP, and which is right"
    return worker.jumped_at, said


def list_overdue(here: Installation) -> Iterator[Condition]:
    """Yield the timers that fired too late or never, and the clusters without a resync.

    Nothing where the worker does not run: that is a condition itself, and the cause of these.
    """
    if is_running(here) is False:
        return
    now = here.records.clock.now()
    late = [
        due.timer.value
        for due in here.records.timers.due(now - SKEW, limit=_MAX_TIMERS)
        if due.counts and due.timer and _is_late(due.timer.value, now)
    ]
    if late:
        first = min(late, key=lambda each: each.at)
        span = _format_span((now - first.at).total_seconds())
        said = (
            f"it is overdue by {span}, and {len(late)} in all are: who publishes what is due does"
            " not; read its log"
        )
        yield failure("overdue", first.name, said, since=first.at)
    for key in here.catalogs.known().clusters:
        yield from _check_resync(here, key, now)


def _is_late(timer: Timer, now: datetime) -> bool:
    return now - timer.at > max(min(timer.at - timer.set_at, _LATE), SKEW)


def _check_resync(here: Installation, key: str, now: datetime) -> Iterator[Condition]:
    timer, about = here.records.timers.get(sweep_timer(key)), f"sweep/{key}"
    longest = here.settings.sweep_interval * 1.1
    if timer is None:
        said = "no resync is scheduled: the next hour schedules it"
        yield failure("overdue", about, said)
    elif timer.value.at > now + longest + SKEW:
        said = (
            f"the next resync is scheduled for {timer.value.at:%Y-%m-%d %H:%M} UTC, later than its"
            " interval: a clock that was ahead scheduled it, and the next hour corrects it;"
            f" `bellhop resync {key}` starts one now"
        )
        yield failure("overdue", about, said, since=timer.value.at)
    health, cluster = here.records.health.get(key).value, here.records.clusters.get(key)
    paused = cluster is not None and pause_of(cluster.value, now) is not None
    if health.state != "Healthy" or health.swept_at is None or paused:
        return
    if now - health.swept_at > longest * _RESYNCS + _LATE:
        said = "no resync of it has ended since then: see what waits in the queues, and the log"
        yield failure("overdue", about, said, since=health.swept_at)


def _describe_offset(worker: WorkerHeartbeat) -> str:
    if abs(worker.off) < SKEW.total_seconds():
        return "since then it is where it would be without jumps"
    way = "ahead of" if worker.off > 0 else "behind"
    return f"it is {_format_span(worker.off)} {way} where it would be without jumps"


def _format_span(seconds: float) -> str:
    whole = round(abs(seconds))
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} seconds"
