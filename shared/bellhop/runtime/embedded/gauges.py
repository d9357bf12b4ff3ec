"""How an installation is right now, read from its records when Prometheus scrapes.

    scrape ──► parts: clusters, queues, timers, held, promotions, disk
                  ├──► those that were read within 2 s
                  └──► bellhop_collector_success for each

Each part is read in a thread of its own, and a scrape waits for it only so long: a disk that hangs
or a file that is locked costs the numbers that need it, and no others. A part takes a hundredth of
the time at most, or its turn once a minute: where reading it takes long, scrapes share what was
read.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bellhop import __version__
from bellhop.core.identity import profile_shown
from bellhop.diagnosis.cluster_status import display_state, read_health
from bellhop.diagnosis.profile_status import read_statuses
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.embedded.state import BACKUP, Embedded, room
from bellhop.state.profile import Profile
from bellhop.state.promotion import PromotionState

_T = TypeVar("_T")

MOST_NAMES = 1000
"""Values of a label that are exported."""


def clusters_by_name(here: Installation) -> Sequence[Metric]:
    """Return the state of each cluster, and when its credentials expire."""
    info = GaugeMetricFamily(
        "bellhop_cluster_info",
        "Each cluster with its state; always 1.",
        labels=["cluster", "state", "kubernetes"],
    )
    expiry = GaugeMetricFamily(
        "bellhop_cluster_credentials_expiry_timestamp_seconds",
        "When the credentials of a cluster expire; absent if they do not.",
        labels=["cluster"],
    )
    named, left_out = _first({each.key: each for each in here.records.clusters.all()})
    for key, cluster in named:
        found = read_health(here, key)
        info.add_metric([key, display_state(here, cluster, found)[0], cluster.kubernetes], 1)
        if found.ends_at:
            expiry.add_metric([key], found.ends_at.timestamp())
    return [info, expiry, _left_out_metric("cluster", left_out)]


def profiles_by_name(here: Installation) -> Sequence[Metric]:
    """Return the status of each profile, and the number of clusters that it selects."""
    status = GaugeMetricFamily(
        "bellhop_profile_status",
        "Each profile with its status; the value is the number of its clusters.",
        labels=["profile", "status"],
    )
    named, left_out = _first({_name(each.profile): each for each in read_statuses(here)})
    for name, each in named:
        status.add_metric([name, each.state], len(each.profile.destinations))
    return [status, _left_out_metric("profile", left_out)]


def promotions_by_name(here: Installation) -> Sequence[Metric]:
    """Return the stages of each promotion, and whether a release is stopped there."""
    stalled = _stalled("promotion", "stage")
    found = {
        f"{state.name} {stage.name}": (state.name, stage)
        for state in _read_states(here)
        for stage in state.stages
    }
    named, left_out = _first(found)
    for _, (promotion, stage) in named:
        stalled.add_metric([promotion, stage.name], stage.stopped)
    return [stalled, _left_out_metric("promotion", left_out)]


def count_stopped(here: Installation) -> Sequence[Metric]:
    """Return the number of stages at which a release is stopped, without their names."""
    stalled = _stalled()
    stalled.add_metric([], sum(len(state.stopped) for state in _read_states(here)))
    return [stalled]


def _read_states(here: Installation) -> list[PromotionState]:
    return [stored.value for _, stored in here.records.promotions.rows()]


def _stalled(*labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "bellhop_promotion_stalled",
        "Stages of promotions at which a release is stopped, and needs a user.",
        labels=labels,
    )


def _name(profile: Profile) -> str:
    return f"ClusterProfile/{profile.title}" if profile.title else profile_shown(profile.name)


def _first(found: dict[str, _T]) -> tuple[Iterable[tuple[str, _T]], int]:
    """Return as many as are exported, by name, and how many are left out."""
    named = sorted(found.items(), key=lambda each: each[0])
    return named[:MOST_NAMES], max(0, len(named) - MOST_NAMES)


def _left_out_metric(label: str, count: int) -> Metric:
    return GaugeMetricFamily(
        f"bellhop_{label}s_left_out",
        f"Names beyond the first thousand, which the label `{label}` leaves out.",
        value=count,
    )


STATES = ("Healthy", "Paused", "Silent", "Unauthorized", "Down", "Unknown")
"""The states of a cluster that `bellhop status` shows."""

LATE = timedelta(minutes=1)
"""A timer that is late by less is on time: the schedule looks every few seconds."""

_PATIENCE = 2.0
_REST = 100
_LONGEST_REST = 60.0

_MOST_TIMERS = 100
"""Late timers that are counted, of each of the sixteen partitions."""

_MOST_HELD = 10_000
"""Objects that are counted of each hold."""


class _Part:
    """Reads one part of the metrics, in one thread at a time, and keeps what it read last."""

    def __init__(self, name: str, read: Callable[[], Sequence[Metric]], log: Log) -> None:
        self.name = name
        self._read = read
        self._log = log
        self._lock = threading.Lock()
        self._future: Future[Sequence[Metric]] | None = None
        self._again_at = 0.0

    def ask(self, pool: Executor) -> Future[Sequence[Metric]]:
        """Return what is being read, or was a moment ago; else read it."""
        with self._lock:
            future = self._future
            if future is None or (future.done() and time.monotonic() >= self._again_at):
                future = self._future = pool.submit(self._run)
            return future

    def _run(self) -> Sequence[Metric]:
        begun = time.monotonic()
        try:
            found = self._read()
        except Exception as error:
            self._log.warning("Failed to read metrics", part=self.name, error=str(error))
            raise
        ended = time.monotonic()
        self._again_at = ended + min(_REST * (ended - begun), _LONGEST_REST)
        return found


class Gauges(Collector):
    """Reads the parts of an installation; scrapes wait for each so many seconds of `patience`."""

    def __init__(
        self,
        embedded: Embedded,
        log: Log,
        patience: float = _PATIENCE,
        labels: Collection[str] = (),
    ) -> None:
        self._here = embedded.installation
        self._queues = embedded.queues
        self._state = embedded.state
        self._patience = patience
        # One metric has no series with names beside one without.
        read_promotions = promotions_by_name if "promotion" in labels else count_stopped
        self._parts = [
            _Part("clusters", self._read_clusters, log),
            _Part("queues", self._read_queues, log),
            _Part("timers", self._read_timers, log),
            _Part("held", self._read_held, log),
            _Part("promotions", lambda: read_promotions(self._here), log),
            _Part("disk", self._read_disk, log),
        ]
        if "cluster" in labels:
            self._parts.append(_Part("cluster_names", lambda: clusters_by_name(self._here), log))
        if "profile" in labels:
            self._parts.append(_Part("profile_names", lambda: profiles_by_name(self._here), log))
        self._pool = ThreadPoolExecutor(len(self._parts), thread_name_prefix="metrics")

    def close(self) -> None:
        """Read nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def collect(self) -> Iterator[Metric]:
        """Yield what could be read in time, and which parts could."""
        asked = {part.name: part.ask(self._pool) for part in self._parts}
        done, _ = wait(asked.values(), self._patience)
        success = _label("collector_success", "Whether a part was read in time.", "part")
        for name, future in asked.items():
            good = future in done and future.exception() is None
            success.add_metric([name], good)
            if good:
                yield from future.result()
        yield success
        version = _label("build_info", "The version of Bellhop.", "version")
        version.add_metric([__version__], 1)
        yield version

    # The parts ----------------------------------------------------------------------------------

    def _read_clusters(self) -> Sequence[Metric]:
        here, states, ends = self._here, Counter[str](), list[float]()
        for each in here.records.clusters.all():
            found = read_health(here, each.key)
            states[display_state(here, each, found)[0]] += 1
            if found.ends_at:
                ends.append(found.ends_at.timestamp())
        clusters = _label("clusters", "Registered clusters, by state.", "state")
        for state in (*STATES, *(states.keys() - set(STATES))):
            clusters.add_metric([state], states[state])
        credentials = GaugeMetricFamily(
            "bellhop_credentials_expiry_timestamp_seconds",
            "When the first credentials of a cluster expire; absent if none does.",
        )
        if ends:
            credentials.add_metric([], min(ends))
        return [clusters, credentials]

    def _read_queues(self) -> Sequence[Metric]:
        now = self._here.records.clock.now()
        waiting = _label("messages_waiting", "Messages that are due and wait.", "queue")
        flight = _label("messages_in_flight", "Messages that are being worked on.", "queue")
        oldest = _label("oldest_message_age_seconds", "Age of the oldest due message.", "queue")
        dead = _label("dead_letters", "Messages that were dead-lettered and not handled.", "queue")
        for name, queue in self._queues.items():
            backlog = queue.backlog()
            waiting.add_metric([name], backlog.waiting)
            flight.add_metric([name], backlog.held)
            oldest.add_metric([name], _age(backlog.since, now))
            dead.add_metric([name], queue.count_dead())
        return [waiting, flight, oldest, dead]

    def _read_timers(self) -> Sequence[Metric]:
        now, heartbeat = self._here.records.clock.now(), self._here.records.pulses.get()
        late = [
            each.item.value["at"]
            for each in self._here.records.timers.due(now - LATE, limit=_MOST_TIMERS)
            if each.counts
        ]
        oldest = datetime.fromisoformat(min(late)) if late else None
        return [
            _gauge("timers_overdue", "Timers that are late by more than a minute.", len(late)),
            _gauge(
                "timer_longest_delay_seconds",
                "How late the timer is that should have fired first.",
                _age(oldest, now),
            ),
            _gauge(
                "heartbeat_timestamp_seconds",
                "When the schedule last wrote to the store, twice a minute.",
                heartbeat.at.timestamp() if heartbeat else 0,
            ),
        ]

    def _read_held(self) -> Sequence[Metric]:
        records = self._here.records
        objects = sum(
            records.holds.count(each.cluster, each.source, _MOST_HELD)
            for each in records.holds.all()
            if each.held_at
        )
        held = _label("held_deletions", "Deletions that wait to be confirmed.", "cause")
        held.add_metric(["events"], objects)
        held.add_metric(["change"], sum(each.value.addons for each in records.removals.all()))
        return [held]

    def _read_disk(self) -> Sequence[Metric]:
        disk = room(self._state)
        files = _label(
            "database_size_bytes", "Size of a database with its write-ahead log.", "file"
        )
        for name in ("store.db", "queue.db"):
            paths = self._state.glob(f"{name}*")
            files.add_metric([name], sum(path.stat().st_size for path in paths))
        return [
            files,
            _gauge(
                "backup_timestamp_seconds",
                "When `bellhop backup` last wrote a backup; 0 if it never did.",
                _write_time(self._state / BACKUP),
            ),
            _gauge("disk_free_bytes", "Free space where the state folder is.", disk.free),
            _gauge("disk_size_bytes", "Size of the disk where the state folder is.", disk.size),
        ]


def _write_time(path: Path) -> float:
    """Return when a file was written, 0 for none."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"bellhop_{name}", text, value=value)


def _label(name: str, text: str, label: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"bellhop_{name}", text, labels=[label])


def _age(since: datetime | None, now: datetime) -> float:
    """Return seconds since a time, 0 for none; of one in the future too."""
    return max(0.0, (now - since).total_seconds()) if since else 0.0
