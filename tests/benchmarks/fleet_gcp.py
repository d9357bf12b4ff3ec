"""A fleet on Google Cloud: `python -m tests.benchmarks.fleet_gcp [CLUSTERS] [SOURCES] …`.

It takes `[EVENTS/S] [SECONDS] [GROWN] [INSTANCES]` as well: the simulation of `fleet`, over Google
in memory that holds the functions to the limits its services publish (`tests/fakes/gcp.py`).
`GROWN` are operations a second that Firestore had taken before: 500 of a new database, from which
the default is reached within three quarters of an hour. Functions are those that the Terraform
module has for so many `INSTANCES`.
An invocation is played whole when it begins, so that a process never has two messages in flight at
once: lines of busy shares are for the tests on Google's emulators.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any

from werkzeug.exceptions import HTTPException

from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.queue import PubsubQueue
from bellhop.adapters.gcp.secrets import VersionedSecrets
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.core.address_policy import LOCAL
from bellhop.logs import Log
from bellhop.runtime.cloud.event_log import LoggedEventLog
from bellhop.runtime.gcp.http import Front
from bellhop.runtime.gcp.push import Push
from bellhop.runtime.gcp.resources import Resources
from bellhop.runtime.gcp.tick import Tick, Woken
from bellhop.state.event_log import Bounds
from bellhop.state.messages import INBOXES, Publisher
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from bellhop.state.worker_pool import SEQUENTIAL
from tests.benchmarks.clouds.events import TICK, Events, Nowhere
from tests.benchmarks.clouds.sizes import GoogleSizes, google_sizes
from tests.benchmarks.figures import percentile, run, table
from tests.fakes import gcp
from tests.fakes.aws import Sent
from tests.fakes.gcp import Google, SimulatedGoogle
from tests.functions.gcp_run import pushed, sent

SMALLEST = (5, 3, 5, 5)
GROWN = 20_000

DELIVERY = 0.1
"""Seconds from publishing to a push, of the order that Google documents."""

FIRST_PUSHES, MOST_PUSHES = 5, 1_000
"""Pushes of a subscription at a time. Google says that it begins with few and adapts to those that
succeed, and not how: here one more for each that does, and half for one that does not."""

BEGINS = 2.5
"""Seconds that an instance takes to begin, assumed."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 600.0
"""Before a push that was refused is made again, as the module has it."""

INSTANCES = 122

_LATER = 3
"""Ticks after the last event, at most."""

_DONE, _NO_INSTANCE = 200, 429
_PROJECT = "projects/fleet/topics/"


class Patient(PubsubQueue):
    """An inbox that waits nothing out in real time: what comes again rests until a tick."""

    patience = timedelta(0)


@dataclass
class Instance:
    """A process, and how many requests it works on."""

    stage: Any
    busy: int = 0


@dataclass
class Service:
    """One function: its instances, each with so many requests at a time."""

    make: Callable[[], Any]
    concurrency: int
    most: int
    instances: list[Instance] = field(default_factory=list)

    @property
    def busy(self) -> int:
        return sum(each.busy for each in self.instances)

    def begin(self) -> tuple[Instance, bool] | None:
        """Find an instance with a free slot, and say if it is new; None if there is no slot."""
        for each in self.instances:
            if each.busy < self.concurrency:
                each.busy += 1
                return each, False
        if len(self.instances) >= self.most:
            return None
        self.instances.append(Instance(self.make(), 1))
        return self.instances[-1], True


class Fleet(Events):
    """An installation on Google Cloud, and its clusters."""

    def __init__(
        self, clusters: int, sources: int, sizes: GoogleSizes, grown: float = GROWN
    ) -> None:
        self.google = Google(grown=grown)
        super().__init__(self.google.clock)
        self.services = SimulatedGoogle(self.google)
        self.most_busy: Counter[str] = Counter()
        self._windows: dict[str, float] = defaultdict(lambda: float(FIRST_PUSHES))
        modules = {name: import_module(f"functions.{name}.gcp") for name in ("evaluate", "ingest")}
        made: Mapping[str, Callable[[], Any]] = {
            "ingest": lambda: Front(modules["ingest"]._stage, self.open),
            "evaluate": lambda: Push(modules["evaluate"]._stage, self.open),
            "deploy": lambda: Push(self.deploy, self.open),
            "sweep": lambda: Push(self.sweep, self.open),
            "schedule": lambda: Tick(lambda here: Woken(here, SEQUENTIAL), self.open),
        }
        self.functions = {
            name: Service(made[name], each["concurrency"], each["instances"])
            for name, each in sizes.items()
        }
        with self.google.unlimited():
            self.settle(clusters, sources)

    # What is there ------------------------------------------------------------------------------

    def open(self) -> Resources:
        """Open the installation, as an instance does with its first event."""
        clock, bounds, log = self.clock, Bounds(), Log(Nowhere())
        store = FirestoreStore(self.services, clock=clock)
        records = Records(store, CloudBlobs(self.services, "b"), Sealer(bytes(32)), clock, bounds)
        records.ledger = LoggedEventLog(records.store, bounds, log)
        records.ledger.gather()
        queues = {
            name: Patient(self.services, _PROJECT + name, store=records.store, clock=clock)
            for name in INBOXES
        }
        return Resources(
            settings=self.settings,
            records=records,
            queues=queues,
            publisher=Publisher(queues),
            services=self.services,
            database="(default)",
            secrets="bellhop",
            ingest_url="",
            log=log,
            reach=LOCAL,
            guard="guard",
        )

    def secrets(self, here: Resources) -> VersionedSecrets:
        """Make the secret store of an installation."""
        return VersionedSecrets(here.services, here.secrets, clock=self.clock)

    def rest(self) -> None:
        """Have all messages worked on at once."""
        while any(self.google.waiting.values()):
            for inbox, stage in INBOXES.items():
                topic = _PROJECT + inbox
                while message := self.google.take(topic, float("inf")):
                    begun = self.functions[stage].begin()
                    assert begun
                    begun[0].stage(_event(topic, message))
                    begun[0].busy -= 1
                    self.google.finish(topic, message, again_at=None)

    # What works ---------------------------------------------------------------------------------

    def play(self, rate: float, seconds: float) -> None:
        """Play so many seconds of events, and ticks for what rests after them."""
        super().play(rate, seconds)
        for _ in range(_LATER):
            if self.lost:
                self.at(self.clock.seconds + TICK, self.tick)
                self.go_on()

    def tick(self) -> None:
        """Have the schedule look."""
        self._invoke("schedule", lambda stage: stage()[1], lambda _: None)

    def send(self, cluster: str, item: Mapping[str, Any]) -> None:
        """Have a cluster's forwarder send something, again until it is taken."""
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": [item]}

        def once() -> None:
            def call(stage: Any) -> int:
                status: int = stage(sent(cluster, "token", batch))[1]
                return status

            self._invoke("ingest", call, answered)

        def answered(status: int) -> None:
            if status != _DONE:
                # Its forwarder keeps it, and comes again.
                self.google.meters.refused[f"ingest, {status}"] += 1
                self.at(self.clock.seconds + 1, once)

        once()

    def _invoke(self, name: str, call: Callable[[Any], int], then: Callable[[int], None]) -> None:
        """Run a function at once; return the status of its answer when its time is over."""
        function, begun = self.functions[name], self.clock.seconds
        found = function.begin()
        if found is None:
            then(_NO_INSTANCE)
            return
        instance, new = found
        self.invocations[name] += 1
        self.most_busy[name] = max(self.most_busy[name], function.busy)
        self.clock.rest(BEGINS * new)
        processor = time.process_time()
        try:
            status = call(instance.stage)
        except HTTPException as error:
            status = error.code or 0
        # Those that an instance works on share its processor.
        self.clock.rest((time.process_time() - processor) * instance.busy)
        ended, self.clock.seconds = self.clock.seconds, begun

        def end() -> None:
            instance.busy -= 1
            then(status)
            self._poll()

        self.at(ended, end)
        self._poll()

    def _poll(self) -> None:
        """Push, of each topic, what waits and there is a window for."""
        for inbox, stage in INBOXES.items():
            waiting = self.google.waiting[_PROJECT + inbox]
            free = int(self._windows[inbox]) - self.google.in_hand[_PROJECT + inbox]
            if waiting and free > 0:
                first = max(self.clock.seconds, waiting[0][0] + DELIVERY)
                self.at(first, self._push, inbox, stage)

    def _push(self, inbox: str, stage: str) -> None:
        topic, now = _PROJECT + inbox, self.clock.seconds
        if self.google.in_hand[topic] >= int(self._windows[inbox]):
            return
        message = self.google.take(topic, now)
        if message is None:
            return
        if message.tries == 1:
            self.ages[inbox].append(now - message.sent_at)

        def end(status: int) -> None:
            window, again_at = self._windows[inbox], None
            if status == _DONE:
                self._windows[inbox] = min(window + 1, MOST_PUSHES)
            else:
                self.google.meters.refused[f"{stage}, {status}"] += 1
                self._windows[inbox] = max(window / 2, 1.0)
                pause = FIRST_PAUSE * 2 ** (message.tries - 1)
                again_at = self.clock.seconds + min(pause, LONGEST_PAUSE)
                # Somebody must look then, whatever else happens.
                self.at(again_at, self._poll)
            self.google.finish(topic, message, again_at=again_at)

        def call(instance: Any) -> int:
            instance(_event(topic, message))
            return _DONE

        self._invoke(stage, call, end)
        self._poll()


def _event(topic: str, message: Sent) -> Any:
    entry = message.entry
    return pushed(topic, message.number, entry["data"], entry["attributes"])


def main(
    clusters: int = 1000,
    sources: int = 50,
    rate: int = 200,
    seconds: int = 60,
    grown: int = GROWN,
    instances: int = INSTANCES,
) -> None:
    """Print what was used of each limit, what was refused, and how long events took."""
    began = time.monotonic()
    fleet = Fleet(clusters, sources, google_sizes(instances), grown)
    settled = time.monotonic()
    fleet.play(rate, seconds)
    google, events = fleet.google, fleet.invocations["ingest"]
    meters = google.meters
    print(
        f"{clusters} clusters of {sources} sources, {events} events in {seconds} s; made in"
        f" {settled - began:.0f} s, played in {time.monotonic() - settled:.0f} s"
    )

    def most(kind: str, limit: float) -> tuple[float, float]:
        return dict(meters.peaks(kind)).get("", 0), limit

    rows: dict[str, tuple[object, ...]] = {
        "Firestore, operations": most("Firestore, operations", grown),
        **{
            f"  writes of {name}": (most, gcp.RANGE_WRITES)
            for name, most in meters.peaks("Firestore, writes key")[:3]
        },
        "Pub/Sub, bytes published": most("Pub/Sub, published bytes", gcp.PUBLISHED),
        "Pub/Sub, bytes pushed": most("Pub/Sub, pushed bytes", gcp.PUSHED),
        "Pub/Sub, pushes of a topic at a time": (
            max(google.most_in_hand.values(), default=0),
            MOST_PUSHES,
        ),
        "Secret Manager, accesses": most("Secret Manager, accesses", gcp.ACCESSES),
        "Cloud Storage, reads": most("Cloud Storage, reads", gcp.BLOBS_READ),
        **{
            f"Cloud Run, requests of {name} at a time": (most, each.concurrency * each.most)
            for name, each in fleet.functions.items()
            if (most := fleet.most_busy[name])
        },
    }
    table("the most in a second", rows, "used", "limit")
    print("\nwrites of the busiest documents in a minute, of 60:")
    for name, times in google.by_minute.peaks("Firestore, a document")[:3]:
        print(f"  {times} of {google.key_of(name)}")
    refused = {name: (count,) for name, count in meters.refused.most_common()}
    table("refused", refused or {"nothing": (0,)}, "times")
    print()
    asked = {
        name: (count, f"{count / events:.2f}") for name, count in meters.asked.most_common()
    } | {f"documents {name}": (n, f"{n / events:.2f}") for name, n in meters.units.items()}
    table("asked for, sweeps too", asked, "times", "an event")
    print()
    ages = {**fleet.ages, "an event, until it is applied": fleet.latencies}
    table(
        "seconds",
        {
            name: [f"{percentile(each, share):.2f}" for share in (50, 99, 100)]
            for name, each in ages.items()
        },
        *("p50", "p99", "longest"),
    )
    print(f"\ninvocations: {dict(fleet.invocations)}")
    made = ", ".join(f"{name} {len(each.instances)}" for name, each in fleet.functions.items())
    print(f"instances: {made}; applied {len(fleet.latencies)}, lost {fleet.lost}")


if __name__ == "__main__":
    run(main)
