"""How it grows: `python -m tests.benchmarks.growth [CLUSTERS] [SOURCES] [EVENTS A SECOND]`.

A simulation. Counted are the store operations, messages and API calls of an event and a resync,
played through all stages over the fakes; measured is their processor time, here. What an operation
takes and costs in a cloud is published as a range, or not at all: one figure stands for each below,
and is to be changed. Events then arrive at random, and wait where all workers are busy.
"""

from __future__ import annotations

import heapq
import json
import math
import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from bellhop.adapters.local.store import SqliteStore
from bellhop.ports.store import ANY, Item
from bellhop.settings import Settings
from tests.benchmarks.figures import percentile, run, table
from tests.fakes.fleet import CountingStore, Fleet, service

SMALLEST = (2, 2, 1)
KINDS = (
    *(("", "v1", kind) for kind in ("Service", "ConfigMap", "Secret", "Pod", "ServiceAccount")),
    *(("apps", "v1", kind) for kind in ("Deployment", "DaemonSet")),
    ("batch", "v1", "Job"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
)
"""What sources name, in turn: an event is of the first kind."""

PLAYED = 20
SIMULATED_SECONDS = 20
BUSY_CLUSTER = 20
"""Events a second of one busy cluster, for the partitions."""

_TAIL = math.log(4) / 2.326
"""Spread of what a step takes: its p99 is four times its p50."""

_MILLION = 1_000_000
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Engine:
    """What one operation takes, in ms, and costs, in USD a million, where Bellhop runs.

    `units` says whether writes are paid by the kilobyte and reads by four. `at_once` is how much
    is worked on at a time; on one machine that is processor time, and calls are waited for beside.
    """

    name: str
    read: float
    write: float
    publish: float
    delivery: float
    start: float
    call: float
    at_once: int
    read_price: float = 0.0
    write_price: float = 0.0
    message_price: float = 0.0
    start_price: float = 0.0
    second_price: float = 0.0
    units: bool = False


EMBEDDED = Engine("one machine", 0, 0, 0, 0, 0, call=5, at_once=1)
# DynamoDB on demand and SQS FIFO with three requests a message, us-east-1; Lambda with 0.5 GB.
AWS = Engine(
    "AWS",
    *(5, 8, 10, 25, 5),
    call=15,
    at_once=1000,
    read_price=0.125,
    write_price=0.625,
    message_price=3 * 0.50,
    start_price=0.20,
    second_price=0.5 * 0.0000166667,
    units=True,
)
# Firestore in one region and Pub/Sub by the kilobyte; Cloud Run with one CPU and 0.5 GiB.
GCP = Engine(
    "Google Cloud",
    *(10, 25, 20, 40, 5),
    call=15,
    at_once=1000,
    read_price=0.30,
    write_price=0.90,
    message_price=2 * 0.04,
    start_price=0.40,
    second_price=0.000024 + 0.5 * 0.0000025,
)


@dataclass(slots=True)
class Step:
    """What a stage does for one event, on average."""

    name: str
    reads: float = 0
    writes: float = 0
    read_units: float = 0
    write_units: float = 0
    published: float = 0
    calls: float = 0
    processor: float = 0

    def held(self, engine: Engine) -> float:
        """Return for how many ms a worker has it."""
        if engine.at_once == 1:
            return self.processor
        waits = self.reads * engine.read + self.writes * engine.write
        waits += self.published * engine.publish + self.calls * engine.call
        return engine.start + waits + self.processor

    def free(self, engine: Engine) -> float:
        """Return for how many ms no worker has it in flight."""
        return engine.delivery + (self.calls * engine.call if engine.at_once == 1 else 0)

    def price(self, engine: Engine) -> float:
        """Return the USD of a million."""
        reads, writes = self.reads, self.writes
        if engine.units:
            reads, writes = self.read_units, self.write_units
        paid = reads * engine.read_price + writes * engine.write_price
        paid += self.published * engine.message_price + engine.start_price
        return paid + self.held(engine) / 1000 * engine.second_price * _MILLION


class MeteredBook(CountingStore):
    """A store that also counts what a cloud would charge, and which partitions are written."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self.units: Counter[str] = Counter()
        self.written: Counter[str] = Counter()

    def get(self, partition: str, sort: str) -> Item | None:
        found = super().get(partition, sort)
        self.units["read"] += _units(found, 4096)
        return found

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        self.units["write"] += _units(item, 1024)
        self.written[item.partition] += 1
        return super().put(item, expect=expect)

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        self.units["write"] += 1
        self.written[partition] += 1
        return super().delete(partition, sort, expect=expect)

    def query(
        self, partition: str, *, prefix: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[Item]:
        size = 0
        for item in super().query(partition, prefix=prefix, after=after, limit=limit):
            size += len(json.dumps(dict(item.value)))
            yield item
        self.units["read"] += max(1, -(-size // 4096))

    def close(self) -> None:
        self._store.close()


def _units(item: Item | None, size: int) -> int:
    return 1 if item is None else max(1, -(-len(json.dumps(dict(item.value))) // size))


class Play:
    """A small fleet in which one cluster has all sources; others would change nothing."""

    def __init__(self, folder: Path, sources: int) -> None:
        self.fleet = Fleet(folder)
        self.store = MeteredBook(self.fleet.store._store)
        self.fleet.store._store = self.store  # type: ignore[assignment]
        self.kube = self.fleet.register("east", env="production")
        self.fleet.apply(*(rules(number) for number in range(sources)))
        self.fleet.write("east", service("first"))
        self.fleet.pump()

    def events(self, count: int) -> list[Step]:
        """Return what each stage does for one of so many events, each of an object of its own."""
        steps: dict[str, Step] = {}
        for number in range(count):
            stored = self.kube.put(service(f"web-{number}"))
            self._step(steps, "ingest", lambda found=stored: self._send(found))
            self._drain(steps)
        return [_share(step, count) for step in steps.values()]

    def sweep(self) -> Step:
        """Return the operations of one resync of the cluster where nothing was missed."""
        self.fleet.clock.advance(self.fleet.settings.sweep_interval * 2)
        steps: dict[str, Step] = {}
        self._step(steps, "schedule", self.fleet.schedule.tick)
        self._drain(steps)
        whole = Step("a sweep")
        for name in FIELDS:
            setattr(whole, name, sum(getattr(step, name) for step in steps.values()))
        return whole

    def _send(self, stored: object) -> None:
        assert self.fleet.send("east", {"object": stored}).status == 200

    def _drain(self, steps: dict[str, Step]) -> None:
        worked = True
        while worked:
            worked = False
            for inbox, queue in self.fleet.queues.items():
                while deliveries := queue.receive(1, wait=timedelta(0)):
                    self._step(
                        steps, inbox, lambda at=inbox, found=deliveries: self.fleet.work(at, found)
                    )
                    worked = True

    def _step(self, steps: dict[str, Step], name: str, work: Callable[[], object]) -> None:
        """Have something done, and add what it took to a step."""
        step = steps.setdefault(name, Step(name))
        counts, units = self.store.counts.copy(), self.store.units.copy()
        calls, begun = len(self.kube.calls), time.process_time()
        with self._publishing() as published:
            work()
        step.processor += (time.process_time() - begun) * 1000
        asked, paid = self.store.counts - counts, self.store.units - units
        step.reads += asked["get"] + asked["query"]
        step.writes += asked["put"] + asked["delete"]
        step.read_units += paid["read"]
        step.write_units += paid["write"]
        step.calls += len(self.kube.calls) - calls
        step.published += published()

    @contextmanager
    def _publishing(self) -> Iterator[Callable[[], int]]:
        waiting = self._waiting()
        yield lambda: max(0, self._waiting() - waiting)

    def _waiting(self) -> int:
        database = next(iter(self.fleet.queues.values()))._database
        return int(database.rows("SELECT coalesce(max(seq), 0) FROM sqlite_sequence")[0][0])


FIELDS = ("reads", "writes", "read_units", "write_units", "published", "calls", "processor")


def _share(step: Step, count: int) -> Step:
    return replace(step, **{name: getattr(step, name) / count for name in FIELDS})


def rules(number: int) -> str:
    """Return a source, its trigger, and the add-on; the first of them all matches."""
    group, version, kind = KINDS[number % len(KINDS)]
    matching = "true" if number == 0 else "false"
    name = f"source-{number}"
    lib = "lib.projectsveltos.io/v1beta1"
    script = f"function evaluate() return {{matching = {matching}}} end"
    selector = {"group": group, "version": version, "kind": kind, "evaluate": script}
    refs = [{"kind": "ConfigMap", "name": name, "namespace": "default"}]
    documents = [
        ("EventSource", {"collectResources": True, "resourceSelectors": [selector]}),
        (
            "EventTrigger",
            {
                "sourceClusterSelector": {"matchLabels": {"env": "production"}},
                "eventSourceName": name,
                "oneForEvent": True,
                "policyRefs": refs,
            },
        ),
    ]
    made = [
        {"apiVersion": lib, "kind": which, "metadata": {"name": name}, "spec": spec}
        for which, spec in documents
    ]
    about = {"name": name, "namespace": "default"}
    about |= {"annotations": {"projectsveltos.io/instantiate": "ok"}}
    made.append(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"policy": POLICY}}
    )
    return "\n---\n".join(map(json.dumps, made))


POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: "front-{{ .Resource.metadata.name }}", namespace: default}
spec: {podSelector: {matchLabels: {app: "{{ .Resource.metadata.name }}"}}}
"""


def simulate(steps: Sequence[Step], engine: Engine, rate: float) -> list[float]:
    """Return the ms that events take which arrive at random and share an engine's workers."""
    dice = random.Random(7)
    agenda: list[tuple[float, int, int, int]] = []
    begun, at = [], 0.0
    while at < SIMULATED_SECONDS * 1000:
        at += dice.expovariate(rate / 1000)
        agenda.append((at, len(begun), 0, 0))
        begun.append(at)
    ended = list(begun)
    waiting: deque[tuple[int, int]] = deque()
    busy = 0
    while agenda:
        # An event comes to a step, or (with 1) leaves its worker.
        now, event, at_step, leaving = heapq.heappop(agenda)
        if leaving:
            busy -= 1
            ended[event] = now + _drawn(dice, steps[at_step].free(engine))
            if at_step + 1 < len(steps):
                heapq.heappush(agenda, (ended[event], event, at_step + 1, 0))
        else:
            waiting.append((event, at_step))
        while waiting and busy < engine.at_once:
            event, at_step = waiting.popleft()
            busy += 1
            took = _drawn(dice, steps[at_step].held(engine))
            heapq.heappush(agenda, (now + took, event, at_step, 1))
    return [end - start for start, end in zip(begun, ended, strict=True)]


def _drawn(dice: random.Random, mean: float) -> float:
    return mean * dice.lognormvariate(-(_TAIL**2) / 2, _TAIL)


def row(engine: Engine, steps: Sequence[Step], sweep: Step, load: tuple[int, int]) -> list[str]:
    """Return what an engine makes of a load: clusters, and events a second."""
    clusters, rate = load
    held = sum(step.held(engine) for step in steps)
    most = engine.at_once / held * 1000
    resyncing = clusters / RESYNC_SECONDS * sweep.held(engine) / 1000 / engine.at_once
    busy = rate / most + resyncing
    times = simulate(steps, engine, rate) if busy < 1 else []
    million = sum(step.price(engine) for step in steps)
    day = clusters * _DAY / RESYNC_SECONDS * sweep.price(engine) / _MILLION
    priced = engine.start_price > 0
    return [
        f"{most:,.0f}",
        f"{busy * engine.at_once:,.1f}",
        f"{percentile(times, 50):,.0f}" if times else "falls behind",
        f"{percentile(times, 99):,.0f}" if times else "-",
        f"{million:,.2f}" if priced else "-",
        f"{day:,.2f}" if priced else "-",
    ]


def main(clusters: int = 5000, sources: int = 100, rate: int = 500) -> None:
    """Print what an event does, what engines make of many, and which partitions are written."""
    with tempfile.TemporaryDirectory() as folder:
        play = Play(Path(folder), sources)
        before = play.store.written.copy()
        steps = play.events(PLAYED)
        written = play.store.written - before
        resync = play.sweep()
        play.fleet.close()
    columns = ("reads", "writes", "messages", "API calls", "processor ms")
    rows = {
        step.name: [
            *(f"{each:.1f}" for each in (step.reads, step.writes, step.published, step.calls)),
            f"{step.processor:.2f}",
        ]
        for step in (*steps, resync)
    }
    table("an event, counted", rows, *columns)
    loads = [(max(1, clusters // part), max(1, rate // part)) for part in (50, 10, 1)]
    engines = {
        f"{engine.name}: {many}, {each}/s": row(engine, steps, resync, (many, each))
        for engine in (EMBEDDED, AWS, GCP)
        for many, each in loads
    }
    table(
        f"clusters of {sources} sources",
        engines,
        *("events/s at most", "busy workers", "p50 ms", "p99 ms"),
        *("USD a million", "sweeps, USD a day"),
    )
    hot = {
        partition: [f"{count / PLAYED:.1f}", f"{count / PLAYED * BUSY_CLUSTER:.0f}"]
        for partition, count in sorted(_families(written).items(), key=lambda each: -each[1])
    }
    table(f"partitions, {BUSY_CLUSTER}/s of one cluster", hot, "writes an event", "a second")


def _families(written: Counter[str]) -> Counter[str]:
    """Sum the sixteen shares of a partition, of which each takes a sixteenth."""
    summed: Counter[str] = Counter()
    for partition, count in written.items():
        head, _, last = partition.rpartition("/")
        shared = len(last) == 1 and head
        summed[f"{head}/0..f" if shared else partition] += count
    return summed


RESYNC_SECONDS = Settings().sweep_interval.total_seconds()


if __name__ == "__main__":
    run(main)
