"""Timers fire, once, whichever process died meanwhile; a failure has one next retry."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Resource
from bellhop.errors import DeniedError, StaleError, TemporaryError, UnreachableError
from bellhop.ports.queue import Done
from bellhop.state import messages
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import Resolve, Resync
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import holder, join, profile
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.unit.state.rig import LARGE
from tests.unit.state.rig import profile as large

MINUTE = timedelta(minutes=1)
OBJECT = """
apiVersion: shop.io/v1
kind: Widget
metadata: {name: w, namespace: default}
"""
PROFILE = join(profile(), holder("own", OBJECT))
WIDGET = GVK("shop.io", "v1", "Widget")


def outcome(fleet: Fleet) -> DeploymentStatus:
    kept = fleet.records.outcomes.get(EAST, "own")
    assert kept
    return kept.value


def bodies(fleet: Fleet, stage: str) -> list[str]:
    """Take all that waits in a queue."""
    queue = fleet.queues[stage]
    taken = queue.receive(1000, wait=timedelta(0))
    return [str(each.message.body["do"]) for each in taken if queue.settle(each, Done())]


@pytest.mark.rest
def test_a_failure_has_one_next_try_and_no_end_to_patience(fleet: Fleet, east: FakeKube) -> None:
    """In a day a kind that never appears is tried with growing pauses, and nothing piles up."""
    fleet.deploy(PROFILE)
    tries = Counter[int]()
    for minute in range(24 * 60):
        before = len(east.calls)
        fleet.wait(MINUTE)
        tries[minute // 60] += any(call.gvk == WIDGET for call in east.calls[before:])

    assert 4 <= tries[0] <= 12
    assert all(3 <= tries[hour] <= 5 for hour in range(1, 24))
    assert all(not queue.list() for queue in fleet.queues.values())
    assert len(list(fleet.records.outcomes.of(EAST))) == 1
    failed = outcome(fleet)
    assert failed.phase == "Failed"
    assert failed.failures > 90
    assert failed.retry_at
    pause = failed.retry_at - fleet.clock.now()
    assert timedelta(0) < pause <= fleet.settings.retry_ceiling * 1.1

    east.serve(Resource(WIDGET, "widgets", namespaced=True))
    fleet.wait(pause)

    assert (outcome(fleet).phase, outcome(fleet).retry_at) == ("Provisioned", None)
    assert fleet.records.timers.get("apply/fleet/east/own") is None


@pytest.mark.parametrize(
    "error",
    [DeniedError("may not"), UnreachableError("does not answer"), TemporaryError("fails: 500")],
    ids=["denied", "unreachable", "a webhook in the cluster fails"],
)
def test_what_may_pass_is_tried_again_without_anybody_asking(
    fleet: Fleet, east: FakeKube, error: Exception
) -> None:
    """Rights are given and clusters come back without a word to us."""
    east.serve(Resource(WIDGET, "widgets", namespaced=True))
    fleet.pump()
    east.fail_with(error, "apply")  # type: ignore[arg-type]
    fleet.apply(PROFILE)
    for _ in range(30):
        fleet.wait(MINUTE)
    assert all(not queue.list() for queue in fleet.queues.values())
    east.fail_with(None)
    for _ in range(17):
        fleet.wait(MINUTE)

    assert east.names(WIDGET) == ["w"]


def test_a_cluster_that_is_back_is_served_at_once(fleet: Fleet, east: FakeKube) -> None:
    """The resync that finds it healthy does not wait for the pauses of what failed there."""
    east.serve(Resource(WIDGET, "widgets", namespaced=True))
    fleet.pump()
    east.fail_with(UnreachableError("does not answer"))
    fleet.apply(PROFILE)
    for _ in range(30):
        fleet.wait(MINUTE)
    east.fail_with(None)
    fleet.resync()

    assert east.names(WIDGET) == ["w"]


def test_each_cluster_is_resynced_at_its_interval(fleet: Fleet, east: FakeKube) -> None:
    """From registration until it is deregistered, each at its own moment."""
    del east
    fleet.register("west")
    fleet.pump()
    resynced = Counter[str]()
    for _ in range(100):
        fleet.clock.advance(MINUTE)
        fleet.schedule.tick()
        for delivery in fleet.queues["sweep"].receive(1000, wait=timedelta(0)):
            asked = messages.read(delivery.message.body)
            if isinstance(asked, Resync) and not asked.walk:
                resynced[asked.cluster] += 1
            fleet.work("sweep", [delivery])
    assert all(16 <= resynced[key] <= 23 for key in (EAST, "fleet/west"))

    fleet.declare.deregister(EAST)
    fleet.pump()
    fleet.wait(timedelta(hours=2))

    assert fleet.records.timers.get(f"sweep/{EAST}") is None
    assert fleet.records.timers.get("sweep/fleet/west") is not None


def test_a_timer_that_is_missing_is_set_by_the_house(fleet: Fleet, east: FakeKube) -> None:
    """A timer that an earlier version, or a lost record, lacks is set within the hour."""
    del east
    fleet.records.timers.cancel(f"sweep/{EAST}")
    fleet.wait(timedelta(hours=2))

    assert fleet.records.timers.get(f"sweep/{EAST}") is not None


def test_a_timer_that_is_set_again_fires_only_at_its_new_time(fleet: Fleet) -> None:
    """Later or earlier: what it was set for before is passed over."""
    fleet.pump()
    start = fleet.clock.now()
    body = Resolve("own").message().body
    for at in (start + MINUTE, start + 3 * MINUTE, start + 2 * MINUTE):
        fleet.records.timers.set("it", at, body)
    fired: list[datetime] = []
    for _ in range(5):
        fleet.clock.advance(MINUTE)
        fleet.schedule.tick()
        fired += [fleet.clock.now() for each in bodies(fleet, "deploy") if each == "resolve"]

    assert fired == [start + 2 * MINUTE]


@pytest.mark.parametrize("call", range(4))
@pytest.mark.parametrize("minutes", [(1, 3), (3, 1)], ids=["sooner", "later"])
def test_of_several_who_ask_by_one_name_the_soonest_counts(
    fleet: Fleet, minutes: tuple[int, int], call: int
) -> None:
    """Whichever comes between the calls of the other; a timer that is due does not count."""
    fleet.pump()
    now, body = fleet.clock.now(), Resolve("own").message().body
    fleet.records.timers.set("it", now, body)
    mine, other = (now + each * MINUTE for each in minutes)

    def set_by(at: datetime) -> None:
        fleet.records.timers.set_by("it", at, body, now=now)

    with interrupted(fleet.records, call, lambda: set_by(other)) as there:
        set_by(mine)
    if not there.met:
        set_by(other)

    timer = fleet.records.timers.get("it")
    assert timer
    assert timer.value.at == now + MINUTE


def test_a_timer_that_is_cancelled_does_not_fire(fleet: Fleet) -> None:
    """And leaves nothing behind."""
    fleet.pump()
    fleet.records.timers.set("it", fleet.clock.now() + MINUTE, Resolve("own").message().body)
    fleet.records.timers.cancel("it")
    fleet.clock.advance(2 * MINUTE)
    fleet.schedule.tick()

    assert bodies(fleet, "deploy") == []
    assert not [
        item
        for shard in "0123456789abcdef"
        for item in fleet.store.query(f"due/{shard}")
        if item.value["name"] == "it"
    ]


def test_an_unreadable_timer_is_dropped_and_logged(fleet: Fleet) -> None:
    """It does not keep the others from firing."""
    fleet.pump()
    for name, body in (("bad", {"do": "dance"}), ("good", Resolve("own").message().body)):
        fleet.records.timers.set(name, fleet.clock.now(), body)
    fleet.schedule.tick()

    assert bodies(fleet, "deploy") == ["resolve"]
    assert fleet.records.timers.get("bad") is None
    assert "Cannot read a timer" in fleet.output.getvalue()


@pytest.mark.parametrize("what", ["set", "fire"])
def test_no_death_loses_a_timer(tmp_path: Path, what: str) -> None:
    """A worker that sets or fires it dies at any step: it has fired in the end, or is not set."""
    for steps in range(1, 400, 3):
        fleet, fate = Fleet(tmp_path / str(steps)), Fate()
        fleet.pump()
        body = Resolve("own").message().body
        at = fleet.clock.now() + MINUTE
        if what == "fire":
            fleet.records.timers.set("it", at, body)
            fleet.clock.advance(2 * MINUTE)
        fleet.store._store = Mortal("store", fleet.store._store, fate)  # type: ignore[assignment]
        fate.doom(steps)
        died = False
        try:
            if what == "set":
                fleet.records.timers.set("it", at, body)
            else:
                fleet.schedule.tick()
        except Killed:
            died = True
        fate.revive()
        if what == "set" and died:
            fleet.records.timers.set("it", at, body)
        fleet.clock.advance(2 * MINUTE)
        fleet.schedule.tick()
        fleet.schedule.tick()

        assert bodies(fleet, "deploy").count("resolve") in ((1,) if not died else (1, 2))
        assert fleet.records.timers.get("it") is None
        fleet.close()
        if not died:
            break
    else:
        pytest.fail("it never ended")


def test_the_house_collects_what_no_record_names(fleet: Fleet) -> None:
    """A day after its record went a blob goes, within an hour."""
    fleet.records.profiles.put(large(LARGE))
    fleet.records.profiles.put(large("small"))

    def blobs() -> int:
        fleet.pump()
        return sum(path.is_file() for path in (fleet.folder / "blobs").rglob("*"))

    assert blobs() == 1
    for _ in range(23):
        fleet.clock.advance(timedelta(hours=1))
        assert blobs() == 1
    for _ in range(2):
        fleet.wait(timedelta(hours=1))
    assert blobs() == 0


@pytest.mark.parametrize("verb", ["apply", "remove"])
def test_a_conflict_from_a_cluster_is_a_status(fleet: Fleet, east: FakeKube, verb: str) -> None:
    """A 409 for ever is shown and tried again; it is no write of ours that was lost."""
    east.serve(Resource(WIDGET, "widgets", namespaced=True))
    if verb == "remove":
        fleet.apply(PROFILE)
    fleet.pump()
    east.fail_with(StaleError("the object has been modified"), verb)
    if verb == "remove":
        fleet.declare.delete([("ClusterProfile", "", "own")])
    else:
        fleet.apply(PROFILE)
    for _ in range(60):
        fleet.wait(MINUTE)

    failed = outcome(fleet)
    assert failed.phase == "Failed"
    assert "has been modified" in failed.message
    assert failed.retry_at
    assert all(not queue.list() for queue in fleet.queues.values())
    east.fail_with(None)
    for _ in range(17):
        fleet.wait(MINUTE)
    assert len(east.objects(WIDGET)) == (verb == "apply")


def test_a_timer_that_is_set_again_while_it_fires_fires_again(fleet: Fleet) -> None:
    """A published message may fail, and set its next retry, before the timer is deleted."""
    fleet.schedule.tick()
    at, body = fleet.clock.now() + MINUTE, Resolve("own").message().body
    fleet.records.timers.set("it", at, body)
    fleet.clock.advance(MINUTE)
    publish = fleet.publisher.publish

    def worked_on_at_once(messages: Any) -> None:
        publish(messages)
        fleet.records.timers.set("it", at + MINUTE, body)

    fleet.publisher.publish = worked_on_at_once  # type: ignore[method-assign]
    fleet.schedule.tick()

    kept = fleet.records.timers.get("it")
    assert kept
    assert kept.value.at == at + MINUTE
