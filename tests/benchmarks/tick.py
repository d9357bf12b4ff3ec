"""Ticks of a large fleet in both clouds: `python -m tests.benchmarks.tick [CLUSTERS] [MINUTES]`.

It takes `[MEGABYTES] [GROWN]` as well: the memory of the function on AWS, which has a share of a
processor by it, and what `fleet_gcp` takes. The real tick runs over AWS and Google in memory, on a
simulated clock on which its threads wait at once. Requests take as long as in the simulations of
`fleet` and `fleet_gcp`; the processor time of the SDK, and our own, is that of the function's share
of a processor, which its threads take in turns.

First come so many minutes of resyncs at the default interval; then an outage after which all
clusters are due at once, and as many ticks as it takes.
"""

from __future__ import annotations

import heapq
import itertools
import statistics
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.store import DynamoStore, S3Blobs
from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.queue import PubsubQueue
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.core.address_policy import LOCAL
from bellhop.logs import Log
from bellhop.runtime.aws.metrics import Metrics
from bellhop.runtime.aws.resources import Resources as AwsResources
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.cloud.tick import HELPERS, Due
from bellhop.runtime.gcp.resources import Resources as GoogleResources
from bellhop.runtime.gcp.tick import Woken
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import INBOXES, CollectGarbage, Publisher, Resync
from bellhop.state.records import Records
from bellhop.state.schedule import HOUSE
from bellhop.state.sealer import Sealer
from bellhop.state.worker_pool import WorkerPool, _Heap
from tests.benchmarks.clouds.aws import WHOLE
from tests.benchmarks.clouds.events import Nowhere
from tests.benchmarks.clouds.module import AWS
from tests.benchmarks.figures import run, table
from tests.benchmarks.fleet_gcp import GROWN
from tests.fakes import aws, gcp
from tests.fakes.aws import Aws, SimulatedClock, SimulatedServices
from tests.fakes.gcp import Google, SimulatedGoogle

SMALLEST = (20, 1)

SDK = {"dynamodb": 0.0007, "sqs": 0.0012, "firestore": 0.0006, "publisher": 0.0010}
"""Seconds of a whole processor that a request takes in the cloud's SDK: measured where nothing was
sent, and about half as much again for TLS."""

_SDK = 0.001
"""The same of any other request."""

_MOST_TICKS = 60
_MINUTE = 60.0

T = TypeVar("T")
R = TypeVar("R")


class ManyClock(SimulatedClock):
    """The time of several threads: the next one goes on once all others rest."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._threads = 1
        self._resting: list[tuple[float, int, threading.Event]] = []
        self._order = itertools.count()

    def rest(self, seconds: float) -> None:
        """Let time pass for one thread, while others go on."""
        turn = threading.Event()
        with self._lock:
            heapq.heappush(self._resting, (self.seconds + seconds, next(self._order), turn))
            self._go_on()
        turn.wait()

    def count(self, more: int) -> None:
        """Count threads that begin, or end."""
        with self._lock:
            self._threads += more
            self._go_on()

    def _go_on(self) -> None:
        if self._resting and len(self._resting) == self._threads:
            self.seconds, _, turn = heapq.heappop(self._resting)
            turn.set()


class SimulatedPool(WorkerPool):
    """Helpers whose threads rest on a simulated clock."""

    def __init__(self, clock: ManyClock, helpers: int) -> None:
        super().__init__()
        self._clock = clock
        self._most = helpers

    def each(
        self, do: Callable[[T], R], items: Sequence[T], go_on: Callable[[], bool]
    ) -> tuple[list[R], Exception | None]:
        heap = _Heap(do, items, go_on)
        heap.one()

        def work() -> None:
            while heap.one():
                pass
            self._clock.count(-1)

        # This thread is one of them, as in reality.
        threads = [threading.Thread(target=work) for _ in range(min(self._most + 1, len(items)))]
        self._clock.count(len(threads))
        for each in threads:
            each.start()
        self._clock.count(-1)
        for each in threads:
            each.join()
        self._clock.count(1)
        return heap.end()


class Processor:
    """A share of a processor, which the threads of a function take in turns."""

    def __init__(self, clock: ManyClock, share: float) -> None:
        self.clock = clock
        self._share = share
        self._free_at = 0.0
        self._threads = threading.local()

    def begin(self) -> None:
        """Forget what this thread did until now."""
        self._threads.used = time.thread_time()

    @contextmanager
    def asking(self, service: str, latency: float) -> Iterator[None]:
        """Take the time of a request, and of what its thread did since the one before."""
        used = time.thread_time()
        own = used - getattr(self._threads, "used", used)
        begins = max(self.clock.seconds, self._free_at)
        self._free_at = begins + (SDK.get(service, _SDK) + own) / self._share
        self.clock.rest(self._free_at - self.clock.seconds + latency)
        yield
        self.begin()


class BusyAws(Aws):
    """AWS that many threads ask at once."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.clock = ManyClock()
        self.processor = Processor(self.clock, share)

    def ask(self, service: str, operation: str, request: Any) -> dict[str, Any]:
        if self.free:
            return super().ask(service, operation, request)
        with self.processor.asking(service, aws.LATENCY[service]):
            self.meters.asked[service] += 1
            answer: dict[str, Any] = getattr(self, f"_{service}_{operation}")(request)
            return answer


class BusyGoogle(Google):
    """Google, likewise."""

    def __init__(self, share: float, grown: float) -> None:
        super().__init__(grown=grown)
        self.clock = ManyClock()
        self.processor = Processor(self.clock, share)

    def ask(self, service: str, operation: str, request: Any) -> Any:
        if self.free:
            return super().ask(service, operation, request)
        with self.processor.asking(service, gcp.LATENCY[service]):
            self.meters.asked[service] += 1
            return getattr(self, f"_{service}_{operation}")(request)


class Installation(ABC):
    """A fleet's timers, and what ticks."""

    def __init__(self, cloud: BusyAws | BusyGoogle) -> None:
        self.cloud = cloud
        self.settings = Settings()
        self.hands = SimulatedPool(cloud.clock, HELPERS)
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
            self.records.timers.set(HOUSE, now + timedelta(days=1), CollectGarbage().message().body)
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
        self.records.timers.set(sweep_timer(cluster), at, Resync(cluster).message().body)

    def tick(self) -> tuple[int, float, int]:
        """Tick, and go to the next minute.

        Return how many messages that were, the seconds, and how many timers are left that were due.
        """
        now, begun = self.cloud.clock.now(), self.cloud.clock.seconds
        self.cloud.processor.begin()
        published = self.due.tick()
        took = self.cloud.clock.seconds - begun
        left = self.late(now)
        self.cloud.clock.seconds += max(_MINUTE - took, 0.0)
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
            reach=LOCAL,
        )

    def make(self, here: Any) -> Due:
        return Due(here, self.hands)


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
            reach=LOCAL,
        )

    def make(self, here: Any) -> Due:
        return Woken(here, self.hands)


def main(clusters: int = 10_000, minutes: int = 5, megabytes: int = 0, grown: int = GROWN) -> int:
    """Print how long ticks took, and what they left; answer 1 if one took over half a minute."""
    share = (megabytes or AWS.memory["schedule"]) / WHOLE
    made: dict[str, Callable[[], Installation]] = {
        "AWS": lambda: OnAws(BusyAws(share)),
        "Google Cloud": lambda: OnGoogle(BusyGoogle(1.0, grown)),
    }
    rows: dict[str, tuple[object, ...]] = {}
    missed = False
    for name, make in made.items():
        installation = make()
        installation.settle(clusters)
        installation.cloud.clock.seconds += _MINUTE
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
    table(
        f"{clusters} clusters", rows, "ticks", "messages a tick", "most", "s p50", "s most", "left"
    )
    return int(missed)


def _row(ticks: list[tuple[int, float, int]]) -> tuple[object, ...]:
    published, seconds, left = zip(*ticks, strict=True)
    times = (f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")
    return len(ticks), f"{statistics.mean(published):.0f}", max(published), *times, left[-1]


if __name__ == "__main__":
    run(main)
