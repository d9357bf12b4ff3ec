"""Timers of renewals, despite deaths, concurrency and long stops."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.local.certificates import make_authority
from bellhop.adapters.local.store import FileBlobs
from bellhop.catalog.cache import Catalogs
from bellhop.declarations.apply import ManifestWriter
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.queue import Done
from bellhop.ports.store import ANY, Item
from bellhop.registration import instructions
from bellhop.registration.due_renewals import Renewals
from bellhop.registration.forwarder_manifests import NAMESPACE, forwarder_secret
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.sweep import make_sweep_table
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.delays import renewal_timer
from bellhop.state.messages import CollectGarbage, Renew
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import CountingStore, FakeAccess
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.renewing import Renewer, renewals_due

KEY = "fleet/east"
NAME = renewal_timer(KEY)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def opened(tmp_path: Path, clock: FakeClock) -> Iterator[Embedded]:
    one = open_state(tmp_path / "state", Settings(), clock=clock)
    yield one
    one.close()


@pytest.fixture
def east() -> FakeKube:
    """The cluster, whose forwarder has the token `t`."""
    kube = FakeKube(KEY)
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    secret = forwarder_secret({"token": "t"})
    given = secret.pop("stringData", {})
    data = {name: base64.b64encode(text.encode()).decode() for name, text in given.items()}
    kube.put({**secret, "data": {**secret.get("data", {}), **data}})
    return kube


@pytest.fixture
def here(opened: Embedded, east: FakeKube) -> Installation:
    access = FakeAccess()
    access.clusters[KEY] = east
    return replace(opened.installation, access=access)


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def process(here: Installation, opened: Embedded, log: io.StringIO) -> Renewer:
    return Renewer(here, opened.queues["sweep"], Log(log))


class Interrupted(CountingStore):
    """A store in which something happens before one of its calls."""

    def at(self, call: int, act: Callable[[], Any]) -> None:
        self.calls, self._call, self._act = 0, call, act

    calls = 0

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self._call:
            self._act()

    def get(self, partition: str, sort: str) -> Item | None:
        self._count()
        return super().get(partition, sort)

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        self._count()
        return super().put(item, expect=expect)


def cluster(now: datetime, **marks: str) -> Cluster:
    authority = make_authority("east", now=now, validity=instructions.VALIDITY)
    wired = {"url": "", "ca": authority.certificate_pem.decode(), "path": "/ring/x", **marks}
    digest = instructions.digest_token("t")
    return Cluster("fleet", "east", {}, "v1.34.2", digest, now, wired)


def make_cluster(now: datetime) -> Cluster:
    """Return a cluster whose registration is done, and whose former token ends in minutes."""
    return cluster(now, settle=(now + instructions.OVERLAP).isoformat())


def due(here: Installation) -> datetime | None:
    timer = here.records.timers.get(NAME)
    return timer.value.at if timer else None


def test_what_the_record_says_is_done_when_it_says(
    here: Installation, process: Renewer, clock: FakeClock
) -> None:
    """Looked at in a minute, settled when it is due, renewed when half of its life has passed."""
    begun = clock.now()
    here.declare.register(make_cluster(begun))
    assert due(here) == begun + MINUTE
    clock.advance(MINUTE)
    assert process.tick() == 1
    assert due(here) == begun + instructions.OVERLAP
    clock.advance(instructions.OVERLAP - 2 * MINUTE)
    assert process.tick() == 0

    clock.advance(MINUTE)
    assert process.tick() == 1
    kept = require_value(here.records.clusters.get(KEY))
    assert "settle" not in kept.forwarder
    half = due(here)
    assert half
    assert abs(half - begun - instructions.VALIDITY / 2) < timedelta(hours=2)
    clock.advance(half - clock.now() - MINUTE)
    assert process.tick() == 0


def test_the_pause_after_a_failure_is_anybodys(
    here: Installation, opened: Embedded, clock: FakeClock, log: io.StringIO
) -> None:
    """A new process retries no sooner than the former one would have."""
    # Its credentials were lost: nobody can register it again.
    here.declare.register(cluster(clock.now() - instructions.VALIDITY))
    clock.advance(MINUTE)
    found = []
    for _ in range(25):
        process = Renewer(here, opened.queues["sweep"], Log(log))
        found.append(process.tick())
        clock.advance(MINUTE)

    assert found == [1, *[0] * 9] * 2 + [1, *[0] * 4]
    assert log.getvalue().count("Cannot renew a cluster") == 3
    assert renewals_due(here) == [KEY]


def test_a_message_that_is_lost_or_late_harms_nothing(
    here: Installation, opened: Embedded, process: Renewer, clock: FakeClock
) -> None:
    """The fired timer is set again before any work; a late message finds nothing due."""
    here.declare.register(make_cluster(clock.now()))
    queue = opened.queues["sweep"]
    clock.advance(MINUTE)
    queue.publish([Renew(KEY).message()])
    lost = False
    process._schedule.tick()
    while deliveries := queue.receive(1, wait=timedelta(0)):
        lost = lost or deliveries[0].message.body["do"] == "renew"
        queue.settle(deliveries[0], Done())
    assert lost
    assert due(here) == clock.now() + 10 * MINUTE
    clock.advance(10 * MINUTE)
    assert process.tick() == 1
    before, when = here.records.clusters.get(KEY), due(here)
    clock.advance(timedelta(days=7))
    queue.publish([Renew(KEY).message()])

    assert process.tick() == 1
    assert here.records.clusters.get(KEY) == before
    assert due(here) == when


def test_a_record_that_is_written_meanwhile_is_not_forgotten(
    here: Installation, opened: Embedded, clock: FakeClock
) -> None:
    """Whenever it is: who looked at the older one does not put off what the newer one asks for."""
    here.declare.register(cluster(clock.now()))
    newer = cluster(clock.now(), begun=clock.now().isoformat())
    store, blobs = Interrupted(opened.store), FileBlobs(opened.state / "blobs")
    there = replace(here, records=Records(store, blobs, Sealer(bytes(32)), clock))
    renewals = Renewals(there, Log(io.StringIO()))
    looked = 0
    while store.calls >= looked:
        looked += 1
        here.records.clusters.put(cluster(clock.now()))
        store.at(looked, lambda: here.declare.register(newer))
        renewals.handle(Renew(KEY))
        if store.calls >= looked:
            soon = due(here)
            assert soon
            assert soon <= clock.now() + MINUTE

    assert looked > 4


def test_a_label_asks_what_is_due_and_changes_nothing_of_it(
    here: Installation, process: Renewer, clock: FakeClock
) -> None:
    """Each write of the record has it looked at, and the time it says stays."""
    here.declare.register(cluster(clock.now()))
    clock.advance(MINUTE)
    process.tick()
    when = due(here)
    here.declare.label(KEY, {"env": "production"})
    assert due(here) == clock.now() + MINUTE
    clock.advance(MINUTE)
    process.tick()

    assert due(here) == when


def test_labels_put_nothing_off(here: Installation, process: Renewer, clock: FakeClock) -> None:
    """However often a cluster is written, what is due is done when it is."""
    here.declare.register(make_cluster(clock.now()))
    asked = 0
    for number in range(20):
        clock.advance(MINUTE / 3)
        here.declare.label(KEY, {"number": str(number)})
        asked += process.tick()

    kept = require_value(here.records.clusters.get(KEY))
    assert "settle" not in kept.forwarder
    assert 5 <= asked <= 8


def test_a_cluster_that_is_forgotten_is_not_renewed(
    here: Installation, opened: Embedded, process: Renewer, clock: FakeClock
) -> None:
    """Nor one without a sender; a late message sets no timer."""
    here.declare.register(make_cluster(clock.now()))
    here.declare.deregister(KEY)
    assert due(here) is None
    opened.queues["sweep"].publish([Renew(KEY).message()])
    assert process.tick() == 1
    assert due(here) is None

    here.declare.register(replace(make_cluster(clock.now()), forwarder={}))
    assert due(here) is None


def test_a_registration_that_died_before_its_timer_is_finished(
    here: Installation, opened: Embedded, clock: FakeClock
) -> None:
    """Wherever it did, once its record was written: it was noted before, and is resumed."""

    def die() -> None:
        raise SystemExit(9)

    store, blobs = Interrupted(opened.store), FileBlobs(opened.state / "blobs")
    records = Records(store, blobs, here.records._payloads._sealer, clock)
    dying = ManifestWriter(records, Catalogs(records), here.publisher, here.settings)
    call, ended = 0, False
    while not ended:
        call += 1
        here.records.clusters.delete(KEY)
        here.records.timers.cancel(NAME)
        store.at(call, die)
        try:
            dying.register(cluster(clock.now(), begun=clock.now().isoformat()))
            ended = True
        except SystemExit:
            clock.advance(MINUTE)
            here.declare.resume()
        soon = due(here)
        assert soon or here.records.clusters.get(KEY) is None
        assert soon is None or soon <= clock.now() + MINUTE

    assert call > 10


def test_the_house_sets_a_timer_that_is_missing(here: Installation, clock: FakeClock) -> None:
    """As after a state was restored to where there were none."""
    here.declare.register(make_cluster(clock.now()))
    here.records.timers.cancel(NAME)
    sweep = Handlers("sweep", make_sweep_table(here, Log(io.StringIO())))
    sweep.handle(CollectGarbage())

    soon = due(here)
    assert soon
    assert soon <= clock.now() + timedelta(minutes=6)
