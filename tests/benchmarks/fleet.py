"""A fleet on AWS: `python -m tests.benchmarks.fleet [CLUSTERS] [SOURCES] [EVENTS/S] [SECONDS]`.

A simulation: every event goes through the real functions and adapters, over AWS in memory that
holds them to the limits its services publish (`tests/fakes/aws.py`), on a clock of its own. One
event in ten is of one busy cluster; half of them are new objects, the rest change one of before;
a cluster that has more than forty deletes its oldest instead. The ledger is dropped each minute.
Clusters are fakes. An invocation is played whole when it begins, so that two which overlap meet
each other's limits, and not each other's half-written records: the histories in `tests/fakes`
are for those.
"""

from __future__ import annotations

import copy
import hashlib
import heapq
import io
import itertools
import json
import math
import random
import time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bellhop.adapters.aws.blobs import S3Blobs
from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.aws.store import DynamoStore
from bellhop.adapters.kube import access as kube_access
from bellhop.adapters.metrics import Prometheus
from bellhop.aws.batch import Batch
from bellhop.aws.front import Front
from bellhop.aws.metrics import Metrics
from bellhop.aws.resources import Resources
from bellhop.aws.tick import Tick
from bellhop.cloud import resources as cloud
from bellhop.cloud.due import Due
from bellhop.cloud.told import ToldLedger
from bellhop.errors import BellhopError
from bellhop.logs import Log
from bellhop.messages import INBOXES, Publisher
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kinds import parse_all, read_documents
from bellhop.model.reach import HERE
from bellhop.model.record import Cluster
from bellhop.ports.kube import Kube
from bellhop.ports.secrets import Secrets
from bellhop.records import Records, Sealer
from bellhop.records.catalogs import Catalogs
from bellhop.records.ledger import Bounds
from bellhop.settings import Settings
from bellhop.stages.declare import Declare
from bellhop.stages.deploy import Deploy
from bellhop.stages.execute import Execute
from bellhop.stages.hands import ALONE
from bellhop.stages.sweep import Sweep
from tests.benchmarks.clouds.aws import SHARE
from tests.benchmarks.clouds.bill import CALL, CALLS
from tests.benchmarks.figures import percentile, run, table
from tests.benchmarks.growth import rules
from tests.fakes.aws import Aws, SimulatedClock, SimulatedServices
from tests.fakes.fleet import service
from tests.fakes.kube import FakeKube
from tests.functions.lab import EVENTS

SMALLEST = (5, 3, 5, 5)
SERVICE = GVK("", "v1", "Service")

BUSY = 0.1
NEW = 0.5
CONCURRENCY = 1000
"""Invocations of an account at a time."""

FIRST_POLLERS, MORE_POLLERS, MOST_POLLERS = 5, 5, 1250
"""Batches of one queue at a time: at first, and so many more each second while messages wait for
longer than half of one. How they grow fewer again is not published: here by one a second."""

_DELIVERY = 0.01
_LATE = 0.5
_TIMEOUT = 60.0
TICK = 60.0
_KEEPS = 40
"""Objects of a cluster, above which the oldest is deleted."""

_URL = "https://sqs.example/1/bellhop-"


class Nowhere(io.StringIO):
    """Where the functions' logs go: hours of them would take all memory."""

    def write(self, text: str) -> int:
        return len(text)


class Clusters:
    """What opens clusters for one environment: it reads a secret for each that it does not know."""

    def __init__(self, fleet: Events, secrets: Secrets) -> None:
        self._fleet = fleet
        self._secrets = secrets
        self._known: OrderedDict[str, None] = OrderedDict()

    def open(self, cluster: str, *, version: str = "", account: str = "") -> Kube:
        del version, account
        if cluster not in self._known:
            self._secrets.read(f"kubeconfig/{cluster}")
            self._known[cluster] = None
            if len(self._known) > kube_access._KEPT:
                self._known.popitem(last=False)
        return self._fleet.kubes[cluster]


class TimedKube(FakeKube):
    """A cluster whose calls take time, and that says when an object was applied."""

    def __init__(self, cluster: str, fleet: Events) -> None:
        super().__init__(cluster)
        self._fleet = fleet

    def apply(self, *arguments: Any, **options: Any) -> Any:
        self._fleet.clock.rest(CALLS * CALL / 1000)
        done = super().apply(*arguments, **options)
        self.calls.clear()
        self._fleet.applied(self.cluster, arguments[0]["metadata"]["name"])
        return done


@dataclass
class Function:
    """One function: its environments that rest, and how many are at work."""

    make: Callable[[], Any]
    idle: list[Any] = field(default_factory=list)
    busy: int = 0
    made: int = 0

    def begin(self) -> Any:
        self.busy += 1
        if self.idle:
            return self.idle.pop()
        self.made += 1
        return self.make()

    def end(self, environment: Any) -> None:
        self.busy -= 1
        self.idle.append(environment)


class Events(ABC):
    """A fleet's clusters, and what happens in them and when, in whichever cloud."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self.settings = Settings()
        self.kubes: dict[str, TimedKube] = {}
        self.latencies: list[float] = []
        self.ages: dict[str, list[float]] = defaultdict(list)
        self.invocations: Counter[str] = Counter()
        self.lost = 0
        self.dice = random.Random(7)
        self._rang: dict[tuple[str, str], float] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._written: dict[str, list[dict[str, Any]]] = defaultdict(list)

    # Each cloud's own ---------------------------------------------------------------------------

    @abstractmethod
    def open(self) -> cloud.Resources:
        """Open the installation, as an environment does with its first event."""

    @abstractmethod
    def secrets(self, here: Any) -> Secrets:
        """Make the secret store of an installation."""

    @abstractmethod
    def send(self, cluster: str, item: Mapping[str, Any]) -> None:
        """Have a cluster's forwarder send something, again until it is taken."""

    @abstractmethod
    def tick(self) -> None:
        """Have the schedule look."""

    @abstractmethod
    def rest(self) -> None:
        """Have all messages worked on at once, until none is left."""

    # What is there ------------------------------------------------------------------------------

    def deploy(self, here: cloud.Resources) -> Deploy:
        """Make a deploy stage that opens this fleet's clusters."""
        rest = here.publisher, here.settings
        catalogs = Catalogs(here.records)
        clusters = Clusters(self, self.secrets(here))
        execute = Execute(catalogs, clusters, *rest, here.log, metrics=Prometheus(here.reach))
        return Deploy(here.records, catalogs, here.publisher, execute, here.settings)

    def sweep(self, here: cloud.Resources) -> Sweep:
        """Make a sweep stage that does."""
        catalogs, access = Catalogs(here.records), Clusters(self, self.secrets(here))
        return Sweep(here.records, catalogs, access, here.publisher, here.settings, here.log)

    def settle(self, clusters: int, sources: int) -> None:
        """Register clusters and declare sources, and have all done that follows at once."""
        here = self.open()
        declare = Declare(here.records, Catalogs(here.records), here.publisher, self.settings)
        texts = [rules(number) for number in range(sources)]
        declare.apply(
            parse_all(each for text in texts for each in read_documents(text, source="rules.yaml"))
        )
        secrets = self.secrets(here)
        interval = self.settings.sweep_interval.total_seconds()
        for number in range(clusters):
            # One after the other, so that their sweeps are due in turn from the beginning on.
            self.clock.seconds = interval * (number / clusters - 1)
            kube = TimedKube(f"fleet/c{number}", self)
            cluster = Cluster(
                *("fleet", f"c{number}", {"env": "production"}, kube.version()),
                token_digest=hashlib.sha256(b"token").hexdigest(),
                registered_at=self.clock.now(),
            )
            declare.register(cluster)
            self.kubes[cluster.key] = kube
            secrets.put(f"kubeconfig/{cluster.key}", b"{}")
        self.clock.seconds = 0.0
        self.rest()

    # What happens -------------------------------------------------------------------------------

    def play(self, rate: float, seconds: float) -> None:
        """Play so many seconds of events, and what follows from them."""
        self.at(0.5, self._tick, seconds)
        moment = 0.0
        while (moment := moment + self.dice.expovariate(rate)) < seconds:
            self.at(moment, self._ring)
        self.go_on()

    def go_on(self) -> None:
        """Play what is to happen, until nothing is."""
        while self._agenda:
            moment, _, step = heapq.heappop(self._agenda)
            self.clock.seconds = moment
            step()
        self.lost = len(self._rang)

    def at(self, moment: float, step: Callable[..., None], *arguments: Any) -> None:
        """Have something happen at a time."""
        heapq.heappush(self._agenda, (moment, next(self._order), lambda: step(*arguments)))

    def applied(self, cluster: str, name: str) -> None:
        """Note that what an event brings is in its cluster."""
        begun = self._rang.pop((cluster, name), None)
        if begun is not None:
            self.latencies.append(self.clock.seconds - begun)

    def _tick(self, until: float) -> None:
        self.tick()
        if self.clock.seconds + TICK < until:
            self.at(self.clock.seconds + TICK, self._tick, until)

    def _ring(self) -> None:
        """Have an object of some cluster be new, or change, and its forwarder send it."""
        names = list(self.kubes)
        busy = self.dice.random() < BUSY
        cluster = names[0] if busy else names[self.dice.randrange(len(names))]
        self.send(cluster, self._changed(cluster, self.kubes[cluster], self._written[cluster]))

    def _changed(
        self, cluster: str, kube: TimedKube, written: list[dict[str, Any]]
    ) -> Mapping[str, Any]:
        """Have an object of a cluster be new, change or go; return what its forwarder tells."""
        if len(written) > _KEEPS:
            about = written.pop(0)["metadata"]
            kube.drop(SERVICE, about["namespace"], about["name"])
            key = str(ObjectKey(SERVICE, about["namespace"], about["name"]))
            return {"gone": {"key": key, "uid": about["uid"], "version": about["resourceVersion"]}}
        if written and self.dice.random() > NEW:
            changed = self.dice.choice(written)
            # What the trigger brings bears this name: another object goes, and this one comes.
            changed["metadata"]["labels"]["turn"] = str(next(self._order))
            changed.update(kube.put(changed))
            return {"object": changed}
        manifest = service(f"web-{next(self._order)}")
        self._rang[cluster, f"front-{manifest['metadata']['name']}"] = self.clock.seconds
        written.append(kube.put(manifest))
        return {"object": written[-1]}


class Fleet(Events):
    """An installation on AWS, and its clusters."""

    def __init__(self, clusters: int, sources: int) -> None:
        self.aws = Aws()
        super().__init__(self.aws.clock)
        self.services = SimulatedServices(self.aws)
        self.most_busy = 0
        self._pollers: Counter[str] = Counter()
        self._most: dict[str, tuple[float, float]] = {}
        self._golden = json.loads((EVENTS / "sqs.json").read_text())["Records"][0]
        self._sent = json.loads((EVENTS / "function_url.json").read_text())
        modules = {name: import_module(f"functions.{name}.aws") for name in ("evaluate", "ingest")}
        self.functions = {
            "ingest": Function(lambda: Front(modules["ingest"]._stage, self.open)),
            "evaluate": Function(lambda: Batch(modules["evaluate"]._stage, self.open)),
            "deploy": Function(lambda: Batch(self.deploy, self.open)),
            "sweep": Function(lambda: Batch(self.sweep, self.open)),
            # An invocation is played in one thread: threads of its own have no simulated time.
            "schedule": Function(lambda: Tick(lambda here: Due(here, ALONE), self.open)),
        }
        with self.aws.unlimited():
            self.settle(clusters, sources)

    # What is there ------------------------------------------------------------------------------

    def open(self) -> Resources:
        """Open the installation, as an environment does with its first event."""
        clock, bounds = self.aws.clock, Bounds()
        store = DynamoStore(self.services, "bellhop", clock=clock)
        records = Records(store, S3Blobs(self.services, "b"), Sealer(bytes(32)), clock, bounds)
        log = Log(Nowhere())
        metrics = Metrics("bellhop", log)
        records.ledger = ToldLedger(records.store, bounds, log, metrics.count)
        records.ledger.gather()
        queues = {name: SqsQueue(self.services, _URL + name, clock=clock) for name in INBOXES}
        publisher = Publisher(queues)
        return Resources(
            settings=self.settings,
            records=records,
            queues=queues,
            publisher=publisher,
            services=self.services,
            secrets="bellhop",
            ingest_url="",
            log=log,
            metrics=metrics,
            reach=HERE,
        )

    def secrets(self, here: Resources) -> ManagedSecrets:
        """Make the secret store of an installation."""
        return ManagedSecrets(here.services, here.secrets)

    def rest(self) -> None:
        """Have all messages worked on at once."""
        while any(self.aws.waiting.values()):
            for inbox, stage in INBOXES.items():
                self._feed_at_rest(inbox, self.functions[stage])

    def _feed_at_rest(self, inbox: str, function: Function) -> None:
        environment = function.begin()
        while taken := self.aws.take(_URL + inbox, math.inf):
            records = [self._record(each, inbox) for each in taken]
            answer = environment({"Records": records}, _Context(self.aws, self.aws.clock.seconds))
            failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
            for each in taken:
                self.aws.finish(_URL + inbox, each.number, failed=each.number in failed)
        function.end(environment)

    # What works ---------------------------------------------------------------------------------

    def tick(self) -> None:
        """Have the schedule look."""
        self._invoke("schedule", {}, lambda _: None)
        # Nobody reads here what was noted: an hour of it is five gigabytes.
        self.aws.forget("ledger")

    def send(self, cluster: str, item: Mapping[str, Any]) -> None:
        """Have a cluster's forwarder send something, again until it is taken."""
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}
        sent = copy.deepcopy(self._sent)
        sent["rawPath"] = sent["requestContext"]["http"]["path"] = f"/clusters/{cluster}"
        sent["headers"]["authorization"] = "Bearer token"
        sent["body"] = json.dumps({**batch, "items": [item]})

        def answered(answer: Mapping[str, Any]) -> None:
            if answer["statusCode"] != 200:
                # Its forwarder keeps it, and comes again.
                self.aws.meters.refused[f"ingest, {answer['statusCode']}"] += 1
                again = self.aws.clock.seconds + 1
                self.at(again, self._invoke, "ingest", sent, answered)

        self._invoke("ingest", sent, answered)

    def _invoke(self, name: str, event: Mapping[str, Any], then: Callable[[Any], None]) -> None:
        """Run a function at once; what it answers comes when its time is over."""
        function, begun = self.functions[name], self.aws.clock.seconds
        environment = function.begin()
        self.invocations[name] += 1
        self.most_busy = max(self.most_busy, sum(each.busy for each in self.functions.values()))
        processor = time.process_time()
        try:
            answer = environment(event, _Context(self.aws, begun))
        except BellhopError as error:
            # The schedule alone tells AWS so, and is asked again.
            self.aws.meters.refused[f"{name}, {error.code}"] += 1
            answer = {}
        self.aws.clock.rest((time.process_time() - processor) / SHARE)
        ended = self.aws.clock.seconds
        self.aws.clock.seconds = begun

        def end() -> None:
            function.end(environment)
            then(answer)
            self._poll()

        self.at(ended, end)
        self._poll()

    def _poll(self) -> None:
        """Begin a batch of each queue where something waits and somebody is free."""
        for inbox, stage in INBOXES.items():
            waiting = self.aws.waiting[_URL + inbox]
            if waiting:
                first = max(self.aws.clock.seconds, waiting[0][0]) + _DELIVERY
                self.at(first, self._feed, inbox, stage)

    def _feed(self, inbox: str, stage: str) -> None:
        now, url = self.aws.clock.seconds, _URL + inbox
        at_work = sum(each.busy for each in self.functions.values())
        if self._pollers[inbox] >= self._free(inbox, now):
            return
        if at_work >= CONCURRENCY:
            self.aws.meters.refused["Lambda, at a time"] += 1
            return
        taken = self.aws.take(url, now)
        if not taken:
            return
        self.ages[inbox] += [now - each.sent_at for each in taken if each.tries == 1]
        self._pollers[inbox] += 1

        def end(answer: Mapping[str, Any]) -> None:
            self._pollers[inbox] -= 1
            failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
            for each in taken:
                self.aws.finish(url, each.number, failed=each.number in failed)

        records = [self._record(each, inbox) for each in taken]
        self._invoke(stage, {"Records": records}, end)

    def _free(self, inbox: str, now: float) -> float:
        """Say how many batches of a queue may be in hand."""
        waiting = self.aws.waiting[_URL + inbox]
        before, most = self._most.get(inbox, (now, float(FIRST_POLLERS)))
        late = bool(waiting) and waiting[0][0] < now - _LATE
        most += (now - before) * (MORE_POLLERS if late else -1)
        self._most[inbox] = now, max(FIRST_POLLERS, min(most, MOST_POLLERS))
        return self._most[inbox][1]

    def _record(self, sent: Any, inbox: str) -> dict[str, Any]:
        record = copy.copy(self._golden)
        shape = record["messageAttributes"]["group"]
        record["messageId"] = record["receiptHandle"] = sent.number
        record["body"] = sent.entry["MessageBody"]
        record["attributes"] = {"ApproximateReceiveCount": str(sent.tries)}
        record["messageAttributes"] = {
            name: {**shape, "stringValue": value["StringValue"]}
            for name, value in sent.entry["MessageAttributes"].items()
        }
        record["eventSourceARN"] = f"arn:aws:sqs:eu-west-1:1:bellhop-{inbox}"
        return record


class _Context:
    """What Lambda says of an invocation that began at a simulated time."""

    def __init__(self, aws: Aws, begun: float) -> None:
        self._aws = aws
        self._begun = begun

    def get_remaining_time_in_millis(self) -> int:
        return int((_TIMEOUT - (self._aws.clock.seconds - self._begun)) * 1000)


def main(clusters: int = 1000, sources: int = 50, rate: int = 200, seconds: int = 60) -> None:
    """Print what was used of each limit, what was refused, and how long events took."""
    began = time.monotonic()
    fleet = Fleet(clusters, sources)
    settled = time.monotonic()
    fleet.play(rate, seconds)
    meters, events = fleet.aws.meters, fleet.invocations["ingest"]
    print(
        f"{clusters} clusters of {sources} sources, {events} events in {seconds} s; made in"
        f" {settled - began:.0f} s, played in {time.monotonic() - settled:.0f} s"
    )
    limits = {"write": (1000, 4000), "read": (3000, 12_000)}
    rows = {}
    for verb, (key, whole) in limits.items():
        rows[f"DynamoDB, {verb} units of the table"] = (meters.peaks(f"{verb} table")[0][1], whole)
        rows[f"  of its busiest partition of four, {verb}"] = (
            meters.peaks(f"{verb} partition")[0][1],
            key,
        )
        for name, most in meters.peaks(f"{verb} key")[:3]:
            rows[f"  {verb}, of the key {name}"] = (most, key)
    rows["SQS, messages in hand of a queue"] = (max(fleet.aws.most_in_hand.values()), 120_000)
    rows["Secrets Manager, reads"] = (dict(meters.peaks("secretsmanager")).get("", 0), 10_000)
    rows["S3, requests"] = (dict(meters.peaks("s3")).get("", 0), 3_500)
    rows["Lambda, invocations at a time"] = (fleet.most_busy, CONCURRENCY)
    table("the most in a second", rows, "used", "limit")
    left = {verb: f"{fleet.aws.credit(verb, key):.0%}" for verb, (key, _) in limits.items()}
    print(f"\nleft at the end of five minutes' credit, where it is least: {left}\n")
    refused = {name: (count,) for name, count in meters.refused.most_common()}
    table("refused", refused or {"nothing": (0,)}, "times")
    print("by DynamoDB, in each minute:", [meters.refused_at[each] for each in _minutes(seconds)])
    print()
    asked = {
        name: (count, f"{count / events:.2f}") for name, count in meters.asked.most_common()
    } | {f"units, {name}": (count, f"{count / events:.2f}") for name, count in meters.units.items()}
    table("asked for, sweeps too", asked, "times", "an event")
    print()
    ages = {
        inbox: [f"{percentile(each, share):.2f}" for share in (50, 99, 100)]
        for inbox, each in fleet.ages.items()
    }
    ages["an event, until it is applied"] = [
        f"{percentile(fleet.latencies, share):.2f}" for share in (50, 99, 100)
    ]
    table("seconds", ages, "p50", "p99", "longest")
    print(f"\ninvocations: {dict(fleet.invocations)}")
    made = ", ".join(f"{name} {each.made}" for name, each in fleet.functions.items())
    print(f"environments: {made}; applied {len(fleet.latencies)}, lost {fleet.lost}")


def _minutes(seconds: int) -> range:
    return range(-(-seconds // 60))


if __name__ == "__main__":
    run(main)
