"""Ticks of a large fleet in both clouds: `python -m tests.benchmarks.tick [CLUSTERS] [MINUTES]`.

The real tick with its threads, over AWS and Google in memory. Requests take as long as in the
simulations of `fleet` and `fleet_gcp`, in real time: all threads sleep at once. The SDK's processor
time, and our own, is that of the function's share of a processor, which its threads take in turns.

First come so many minutes of resyncs at the default interval; then an outage after which all
clusters are due at once, and as many ticks as it takes. A minute between two ticks passes at once.
"""

from __future__ import annotations

import statistics
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bellhop.adapters.aws.blobs import S3Blobs
from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.store import DynamoStore
from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.queue import PubsubQueue
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.aws.metrics import Metrics
from bellhop.aws.resources import Resources as AwsResources
from bellhop.cloud.due import Due
from bellhop.cloud.resources import Resources
from bellhop.engine.pacing import sweep_timer
from bellhop.gcp.resources import Resources as GoogleResources
from bellhop.gcp.tick import Woken
from bellhop.logs import Log
from bellhop.messages import INBOXES, Keep, Publisher, Sweep
from bellhop.model.reach import HERE
from bellhop.model.record import Cluster
from bellhop.records import Records, Sealer
from bellhop.settings import Settings
from bellhop.stages.schedule import HOUSE
from tests.benchmarks.clouds.aws import WHOLE
from tests.benchmarks.clouds.module import AWS
from tests.benchmarks.figures import run, table
from tests.benchmarks.fleet import Nowhere
from tests.benchmarks.fleet_gcp import GROWN
from tests.fakes import aws, gcp
from tests.fakes.aws import Aws, SimulatedClock, SimulatedServices
from tests.fakes.gcp import Google, SimulatedGoogle

SMALLEST = (20, 1)

SDK = {"dynamodb": 0.0007, "sqs": 0.0012, "firestore": 0.0006, "publisher": 0.0010}
"""Seconds of a whole processor that a request takes in the cloud's SDK: measured where nothing was
sent, and about half as much again for TLS."""

_MOST_TICKS = 60
_MINUTE = 60.0


class RunningClock(SimulatedClock):
    """A clock that goes on by itself, and can be set ahead."""

    def __init__(self) -> None:
        self._ahead = -time.monotonic()

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Return the seconds since it was made, and those that it was set ahead."""
        return time.monotonic() + self._ahead

    def rest(self, seconds: float) -> None:
        """Let time pass for one thread, while others go on."""
        time.sleep(seconds)

    def skip(self, seconds: float) -> None:
        """Let time pass at once."""
        self._ahead += max(seconds, 0.0)


class Processor:
    """A share of a processor, which threads take in turns: requests and what they need of it."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._turns = threading.Lock()
        self._threads = threading.local()

    def ask(self, service: str, latency: float) -> None:
        """Take the time of a request, and of what this thread did since its last one."""
        used = time.thread_time()
        own = used - getattr(self._threads, "used", used)
        with self._turns:
            time.sleep((SDK.get(service, 0.001) + own) / self._share - own)
        time.sleep(latency)
        self._threads.used = time.thread_time()


class LiveAws(Aws):
    """AWS whose requests take real time, many at once."""

    def __init__(self, processor: Processor) -> None:
        super().__init__()
        self.clock = RunningClock()
        self._processor = processor
        self._lock = threading.Lock()

    def ask(self, service: str, operation: str, request: Any) -> dict[str, Any]:
        if not self.free:
            self._processor.ask(service, aws.LATENCY[service])
        with self._lock:
            self.meters.asked[service] += not self.free
            answer: dict[str, Any] = getattr(self, f"_{service}_{operation}")(request)
            return answer


class LiveGoogle(Google):
    """Google, likewise."""

    def __init__(self, processor: Processor) -> None:
        super().__init__(grown=GROWN)
        self.clock = RunningClock()
        self._processor = processor
        self._lock = threading.Lock()

    def ask(self, service: str, operation: str, request: Any) -> Any:
        if not self.free:
            self._processor.ask(service, gcp.LATENCY[service])
        with self._lock:
            self.meters.asked[service] += not self.free
            return getattr(self, f"_{service}_{operation}")(request)


class Installation(ABC):
    """A fleet's timers, and what ticks."""

    def __init__(self, cloud: LiveAws | LiveGoogle) -> None:
        self.cloud = cloud
        self.settings = Settings()
        here = self.open()
        self.records = here.records
        self.due = self.make(here)

    @abstractmethod
    def open(self) -> Resources:
        """Open the installation."""

    @abstractmethod
    def make(self, here: Any) -> Due:
        """Make what ticks."""

    def records_over(self, store: Any, blobs: Any) -> Records:
        """Make records."""
        return Records(store, blobs, Sealer(bytes(32)), self.cloud.clock)

    def settle(self, clusters: int) -> None:
        """Register clusters whose resyncs are spread over an interval."""
        now, interval = self.cloud.clock.now(), self.settings.sweep_interval
        with self.cloud.unlimited():
            self.records.timers.set(HOUSE, now + timedelta(days=1), Keep().message().body)
            for number in range(clusters):
                cluster = Cluster("fleet", f"c{number}", {}, "v1.30.0", "", registered_at=now)
                self.records.clusters.put(cluster)
                at = now + interval * (number / clusters)
                self._set(cluster.key, at)

    def delay(self, clusters: int) -> None:
        """Have the resyncs of all clusters be due at once, as after an outage."""
        now = self.cloud.clock.now() - timedelta(hours=1)
        with self.cloud.unlimited():
            for number in range(clusters):
                self._set(f"fleet/c{number}", now)

    def _set(self, cluster: str, at: datetime) -> None:
        self.records.timers.set(sweep_timer(cluster), at, Sweep(cluster).message().body)

    def tick(self) -> tuple[int, float, int]:
        """Tick, and go to the next minute.

        Return how many messages that were, the seconds, and how many timers are left that were due.
        """
        now, begun = self.cloud.clock.now(), self.cloud.clock.seconds
        published = self.due.tick()
        took = self.cloud.clock.seconds - begun
        left = self.late(now)
        self.cloud.clock.skip(_MINUTE - took)
        return published, took, left

    def late(self, now: datetime) -> int:
        """Count the timers that were due by then."""
        with self.cloud.unlimited():
            return sum(each.counts for each in self.records.timers.due(now, limit=1_000_000))


class OnAws(Installation):
    """On AWS."""

    def open(self) -> AwsResources:
        services = SimulatedServices(self.cloud)
        clock, log = self.cloud.clock, Log(Nowhere())
        queues = {name: SqsQueue(services, f"https://sqs/{name}", clock=clock) for name in INBOXES}
        return AwsResources(
            settings=self.settings,
            records=self.records_over(
                DynamoStore(services, "bellhop", clock=clock), S3Blobs(services, "b")
            ),
            queues=queues,
            publisher=Publisher(queues),
            services=services,
            secrets="bellhop",
            ingest_url="",
            log=log,
            metrics=Metrics("bellhop", log),
            reach=HERE,
        )

    def make(self, here: Any) -> Due:
        return Due(here)


class OnGoogle(Installation):
    """On Google Cloud."""

    def open(self) -> GoogleResources:
        services, clock = SimulatedGoogle(self.cloud), self.cloud.clock
        records = self.records_over(
            FirestoreStore(services, clock=clock), CloudBlobs(services, "b")
        )
        queue = partial(PubsubQueue, services, store=records.store, clock=clock)
        queues = {name: queue(f"projects/fleet/topics/{name}") for name in INBOXES}
        return GoogleResources(
            settings=self.settings,
            records=records,
            queues=queues,
            publisher=Publisher(queues),
            services=services,
            database="(default)",
            secrets="bellhop",
            ingest_url="",
            log=Log(Nowhere()),
            reach=HERE,
        )

    def make(self, here: Any) -> Due:
        return Woken(here)


def main(clusters: int = 10_000, minutes: int = 5, megabytes: int = 0) -> int:
    """Print how long ticks took, and what they left; answer 1 if one took over half a minute."""
    share = (megabytes or AWS.memory["schedule"]) / WHOLE
    made: dict[str, Callable[[], Installation]] = {
        "AWS": lambda: OnAws(LiveAws(Processor(share))),
        "Google Cloud": lambda: OnGoogle(LiveGoogle(Processor(1.0))),
    }
    rows: dict[str, tuple[object, ...]] = {}
    missed = False
    for name, make in made.items():
        installation = make()
        installation.settle(clusters)
        installation.cloud.clock.skip(_MINUTE)
        steady = [installation.tick() for _ in range(minutes)]
        rows[f"{name}, each minute"] = _row(steady)
        installation.delay(clusters)
        after = [installation.tick()]
        while after[-1][2] and len(after) < _MOST_TICKS:
            after.append(installation.tick())
        rows[f"{name}, after an outage"] = _row(after)
        missed = missed or any(took > _MINUTE / 2 for _, took, _ in steady + after)
        asked = installation.cloud.meters
        print(f"{name}: {dict(asked.asked)}; refused: {dict(asked.refused)}", flush=True)
    table(f"{clusters} clusters", rows, "ticks", "messages a tick", "s p50", "s most", "left")
    return int(missed)


def _row(ticks: list[tuple[int, float, int]]) -> tuple[object, ...]:
    published, seconds, left = zip(*ticks, strict=True)
    times = (f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")
    return len(ticks), f"{statistics.mean(published):.0f}", *times, left[-1]


if __name__ == "__main__":
    run(main)
