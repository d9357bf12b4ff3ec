"""A fleet on AWS: `python -m tests.benchmarks.fleet [CLUSTERS] [SOURCES] [EVENTS/S] [SECONDS]`.

It takes `[CONCURRENCY]` as well. A simulation: every event goes through the real functions and
adapters, over AWS in memory that holds them to the limits its services publish
(`tests/fakes/aws.py`), on a clock of its own. Queues, batches, memory, time-outs and limits of
concurrency are those that the Terraform module has for a `concurrency`. `clouds/events.py` says
what happens in the clusters. The event log is dropped each minute.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.aws.store import DynamoStore, S3Blobs
from bellhop.core.address_policy import LOCAL
from bellhop.errors import BellhopError
from bellhop.logs import Log
from bellhop.runtime.aws.batch import Batch
from bellhop.runtime.aws.http import Front
from bellhop.runtime.aws.metrics import Metrics
from bellhop.runtime.aws.resources import Resources
from bellhop.runtime.cloud.event_log import LoggedEventLog
from bellhop.runtime.cloud.tick import Due, Ticker
from bellhop.state.event_log import Bounds
from bellhop.state.messages import Publisher
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from bellhop.state.worker_pool import SEQUENTIAL
from tests.benchmarks.clouds.aws import WHOLE
from tests.benchmarks.clouds.events import Events, Nowhere
from tests.benchmarks.clouds.sizes import AwsSizes, aws_sizes
from tests.benchmarks.figures import percentile, run, table
from tests.fakes.aws import Aws, Sent, SimulatedServices
from tests.functions.lab import EVENTS

SMALLEST = (5, 3, 5, 5)
CONCURRENCY = 1000

FIRST_POLLERS, MORE_POLLERS = 5, 5
"""Batches of one queue at a time: at first, and so many more each second while messages wait for
longer than half of one. How they grow fewer again is not published: here by one a second."""

THROTTLED = 1.0
"""Seconds after which a mapping invokes again where Lambda had no execution left, assumed."""

_DELIVERY = 0.01
_LATE = 0.5
_OK, _UNAVAILABLE = 200, 503

_URL = "https://sqs.example/1/bellhop-"


@dataclass
class Function:
    """One function: its environments that rest, and how many are at work.

    `share` is what it has of a processor by its memory, `timeout` its seconds.
    """

    make: Callable[[], Any]
    share: float
    timeout: float
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


class Fleet(Events):
    """An installation on AWS, and its clusters."""

    def __init__(self, clusters: int, sources: int, sizes: AwsSizes) -> None:
        self.aws = Aws()
        self.sizes = sizes
        super().__init__(self.aws.clock)
        self.services = SimulatedServices(self.aws)
        self.most_busy = 0
        self._pollers: Counter[str] = Counter()
        self._most: dict[str, tuple[float, float]] = {}
        self._golden = json.loads((EVENTS / "sqs.json").read_text())["Records"][0]
        self._sent = json.loads((EVENTS / "function_url.json").read_text())
        modules = {name: import_module(f"functions.{name}.aws") for name in ("evaluate", "ingest")}
        made: Mapping[str, Callable[[], Any]] = {
            "ingest": lambda: Front(modules["ingest"]._stage, self.open),
            "evaluate": lambda: Batch(modules["evaluate"]._stage, self.open),
            "deploy": lambda: Batch(self.deploy, self.open),
            "sweep": lambda: Batch(self.sweep, self.open),
            # An invocation is played in one thread: threads of its own have no simulated time.
            "schedule": lambda: Ticker(lambda here: Due(here, SEQUENTIAL), self.open),
        }
        self.functions = {
            name: Function(made[name], min(1.0, each["memory"] / WHOLE), each["timeout"])
            for name, each in sizes.functions.items()
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
        records.ledger = LoggedEventLog(records.store, bounds, log, metrics.count)
        records.ledger.gather()
        queues = {
            name: SqsQueue(self.services, _URL + name, clock=clock) for name in self.sizes.feeds
        }
        publisher = Publisher({inbox: queues[q] for inbox, q in self.sizes.queue_of.items()})
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
            reach=LOCAL,
        )

    def secrets(self, here: Resources) -> ManagedSecrets:
        """Make the secret store of an installation."""
        return ManagedSecrets(here.services, here.secrets)

    def rest(self) -> None:
        """Have all messages worked on at once."""
        while any(self.aws.waiting.values()):
            for queue, feed in self.sizes.feeds.items():
                self._feed_at_rest(queue, self.functions[feed.stage])

    def _feed_at_rest(self, queue: str, function: Function) -> None:
        environment = function.begin()
        while taken := self.aws.take(_URL + queue, math.inf):
            records = [self._record(each, queue) for each in taken]
            context = _Context(self.aws, self.aws.clock.seconds, function.timeout)
            self._finish(queue, taken, environment({"Records": records}, context))
        function.end(environment)

    def _finish(self, queue: str, taken: list[Sent], answer: Mapping[str, Any]) -> None:
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        for each in taken:
            self.aws.finish(_URL + queue, each.number, failed=each.number in failed)

    # What works ---------------------------------------------------------------------------------

    def tick(self) -> None:
        """Have the schedule look."""
        if self._has_capacity("schedule"):
            self._invoke("schedule", {}, lambda _: None)
        else:
            self.at(self.clock.seconds + THROTTLED, self.tick)
            return
        # Nobody reads here what was noted: an hour of it is five gigabytes.
        self.aws.forget("ledger")

    def send(self, cluster: str, item: Mapping[str, Any]) -> None:
        """Have a cluster's forwarder send something, again until it is taken."""
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}
        sent = copy.deepcopy(self._sent)
        sent["rawPath"] = sent["requestContext"]["http"]["path"] = f"/clusters/{cluster}"
        sent["headers"]["authorization"] = "Bearer token"
        sent["body"] = json.dumps({**batch, "items": [item]})

        def once() -> None:
            if self._has_capacity("ingest"):
                self._invoke("ingest", sent, answered)
            else:
                answered({"statusCode": _UNAVAILABLE})

        def answered(answer: Mapping[str, Any]) -> None:
            if answer["statusCode"] != _OK:
                # Its forwarder keeps it, and comes again.
                self.aws.meters.refused[f"ingest, {answer['statusCode']}"] += 1
                self.at(self.clock.seconds + 1, once)

        once()

    @property
    def busy(self) -> int:
        """Count the executions of all functions."""
        return sum(each.busy for each in self.functions.values())

    def _has_capacity(self, name: str) -> bool:
        """Say whether an execution is left, and count it as a throttle if not."""
        if self.busy < self.sizes.concurrency:
            return True
        self.aws.meters.refused[f"Lambda, {name}"] += 1
        return False

    def _invoke(self, name: str, event: Mapping[str, Any], then: Callable[[Any], None]) -> None:
        """Run a function at once; what it answers comes when its time is over."""
        function, begun = self.functions[name], self.aws.clock.seconds
        environment = function.begin()
        self.invocations[name] += 1
        self.most_busy = max(self.most_busy, self.busy)
        processor = time.process_time()
        try:
            answer = environment(event, _Context(self.aws, begun, function.timeout))
        except BellhopError as error:
            # Only the schedule reports it to AWS so, and is asked again.
            self.aws.meters.refused[f"{name}, {error.code}"] += 1
            answer = {}
        self.aws.clock.rest((time.process_time() - processor) / function.share)
        ended = self.aws.clock.seconds
        self.aws.clock.seconds = begun

        def end() -> None:
            function.end(environment)
            then(answer)
            self._poll()

        self.at(ended, end)
        self._poll()

    def _poll(self) -> None:
        """Begin a batch of each queue where messages wait and its mapping may invoke."""
        for queue in self.sizes.feeds:
            waiting = self.aws.waiting[_URL + queue]
            if waiting:
                first = max(self.aws.clock.seconds, waiting[0][0]) + _DELIVERY
                self.at(first, self._feed, queue)

    def _feed(self, queue: str) -> None:
        now, feed = self.aws.clock.seconds, self.sizes.feeds[queue]
        if self._pollers[queue] >= self._pollers_of(queue, now):
            return
        taken = self.aws.take(_URL + queue, now, feed.batch, feed.visibility)
        if not taken:
            return
        self.ages[queue] += [now - each.sent_at for each in taken if each.tries == 1]
        self._pollers[queue] += 1
        self._hand_over(queue, taken, now + feed.visibility)

    def _hand_over(self, queue: str, taken: list[Sent], until: float) -> None:
        """Invoke with a batch, again while Lambda throttles it and its messages are hidden."""

        def end(answer: Mapping[str, Any]) -> None:
            self._pollers[queue] -= 1
            self._finish(queue, taken, answer)

        stage = self.sizes.feeds[queue].stage
        records = [self._record(each, queue) for each in taken]
        if self._has_capacity(stage):
            self._invoke(stage, {"Records": records}, end)
        elif self.clock.seconds + THROTTLED < until:
            self.at(self.clock.seconds + THROTTLED, self._hand_over, queue, taken, until)
        else:
            end({"batchItemFailures": [{"itemIdentifier": each.number} for each in taken]})

    def _pollers_of(self, queue: str, now: float) -> float:
        """Return how many batches of a queue may be in flight."""
        waiting = self.aws.waiting[_URL + queue]
        before, most = self._most.get(queue, (now, float(FIRST_POLLERS)))
        late = bool(waiting) and waiting[0][0] < now - _LATE
        most += (now - before) * (MORE_POLLERS if late else -1)
        self._most[queue] = now, max(FIRST_POLLERS, most)
        return min(self._most[queue][1], self.sizes.feeds[queue].most)

    def _record(self, sent: Any, queue: str) -> dict[str, Any]:
        record = copy.copy(self._golden)
        shape = record["messageAttributes"]["group"]
        record["messageId"] = record["receiptHandle"] = sent.number
        record["body"] = sent.entry["MessageBody"]
        record["attributes"] = {"ApproximateReceiveCount": str(sent.tries)}
        record["messageAttributes"] = {
            name: {**shape, "stringValue": value["StringValue"]}
            for name, value in sent.entry["MessageAttributes"].items()
        }
        record["eventSourceARN"] = f"arn:aws:sqs:eu-west-1:1:bellhop-{queue}"
        return record


class _Context:
    """What Lambda says of an invocation that began at a simulated time."""

    def __init__(self, aws: Aws, begun: float, timeout: float) -> None:
        self._aws = aws
        self._ends = begun + timeout

    def get_remaining_time_in_millis(self) -> int:
        return int((self._ends - self._aws.clock.seconds) * 1000)


def main(
    clusters: int = 1000,
    sources: int = 50,
    rate: int = 200,
    seconds: int = 60,
    concurrency: int = CONCURRENCY,
) -> None:
    """Print what was used of each limit, what was refused, and how long events took."""
    began = time.monotonic()
    fleet = Fleet(clusters, sources, aws_sizes(concurrency))
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
    rows["Lambda, invocations at a time"] = (fleet.most_busy, concurrency)
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
        queue: [f"{percentile(each, share):.2f}" for share in (50, 99, 100)]
        for queue, each in fleet.ages.items()
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
