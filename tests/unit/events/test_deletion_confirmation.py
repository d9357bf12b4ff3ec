"""Confirmation: resyncs in a row release held matches of deleted objects, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.events.deletion_guard import release_batch
from bellhop.state.cluster import Health
from bellhop.state.messages import CheckDeletionGuard, Resync
from tests.fakes.fleet import POLICY, SERVICE, Fleet, OpenFleet
from tests.fakes.kube import FakeKube
from tests.unit.events.test_deletion_guard import (
    GUARDED,
    SOURCE,
    began,
    drop,
    held,
    hold,
    later,
    names,
    numbered_service,
    present_hold,
    selecting,
)

AGREED = replace(GUARDED, hold_agreement=2)
"""Two resyncs are to confirm, after one that may have listed too early."""


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    return open_fleet(AGREED)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which eight of ten Services are deleted, six of which are held."""
    kube = began(fleet, 10)
    drop(fleet, kube, range(8))
    later(fleet, 3)
    assert held(fleet) == names(range(2, 8))
    return kube


def resync(fleet: Fleet, times: int = 1) -> None:
    """Have the schedule resync, and the guard count the resync."""
    for _ in range(times):
        fleet.wait(fleet.settings.sweep_interval + timedelta(minutes=2))


def test_withdraws_what_resyncs_in_a_row_find_deleted(fleet: Fleet, east: FakeKube) -> None:
    """Not before as many have listed the kind since the deletion, and without a request."""
    resync(fleet, 2)
    assert east.names(POLICY) == names(range(2, 10))

    resync(fleet, 2)
    assert east.names(POLICY) == names(range(8, 10))
    assert hold(fleet) is None
    details = [each.detail for each in fleet.ledger() if each.what == "unmatched"]
    assert details[-6:] == ["resyncs agree that it is deleted"] * 6


@pytest.mark.usefixtures("east")
def test_a_resync_counts_once(fleet: Fleet) -> None:
    """However often the guard is checked after a resync, it counts once."""
    resync(fleet)
    for _ in range(6):
        fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
        fleet.pump()

    assert present_hold(fleet).sweeps == 1
    assert held(fleet) == names(range(2, 8))


def test_keeps_what_exists_and_does_not_match_any_more(open_fleet: OpenFleet) -> None:
    """Resyncs confirm a wrong source again and again: a person has to decide."""
    fleet = open_fleet(AGREED)
    kube = began(fleet, 10)
    fleet.deploy(selecting("'no'"))
    later(fleet, 3)
    resync(fleet, 12)

    assert kube.names(POLICY) == names(range(2, 10))
    assert held(fleet) == names(range(2, 10))
    fleet.deploy(selecting())
    assert kube.names(POLICY) == names(range(10))


def test_keeps_objects_of_a_kind_that_the_source_dropped(open_fleet: OpenFleet) -> None:
    """No resync lists a kind that the source does not name any more."""
    fleet = open_fleet(AGREED)
    kube = began(fleet, 10)
    fleet.deploy(selecting(kind="Secret"))
    later(fleet, 3)
    before = held(fleet)
    resync(fleet, 6)

    assert before
    assert held(fleet) == before
    assert set(before) <= set(kube.names(POLICY))


def test_counts_again_for_objects_deleted_later(fleet: Fleet, east: FakeKube) -> None:
    """An object that was deleted between confirmations of others waits for as many of its own."""
    resync(fleet, 2)
    drop(fleet, east, range(8, 9))
    resync(fleet, 2)
    assert held(fleet) == ["s8"]
    assert east.names(POLICY) == ["s8", "s9"]

    resync(fleet, 4)
    assert east.names(POLICY) == ["s9"]
    assert hold(fleet) is None


def test_an_object_that_exists_again_stays(fleet: Fleet, east: FakeKube) -> None:
    """An object that exists when the others are confirmed keeps its add-ons."""
    resync(fleet, 2)
    fleet.write("east", numbered_service(4))
    resync(fleet, 2)

    assert east.names(POLICY) == ["s4", *names(range(8, 10))]
    assert hold(fleet) is None


def test_an_object_that_exists_and_is_not_evaluated_yet_stays(fleet: Fleet, east: FakeKube) -> None:
    """A resync has just found it, although its match still counts as ended."""
    resync(fleet, 3)
    assert held(fleet) == names(range(2, 8))
    fleet.clock.advance(fleet.settings.sweep_interval + timedelta(minutes=2))
    east.put(numbered_service(4))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.work("sweep", fleet.queues["sweep"].receive(50, wait=timedelta(0)))
    fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
    assert held(fleet) == ["s4"]

    fleet.pump()
    assert east.names(POLICY) == ["s4", *names(range(8, 10))]


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    "health",
    [
        pytest.param({"unseen": (SERVICE,)}, id="a kind that could not be listed"),
        pytest.param({"state": "Down"}, id="a cluster that does not answer"),
    ],
)
def test_an_incomplete_resync_does_not_count(fleet: Fleet, health: dict[str, object]) -> None:
    """An error is never an empty answer, for what is held either."""
    for _ in range(8):
        fleet.clock.advance(fleet.settings.sweep_interval)
        met = Health("Healthy", swept_at=fleet.clock.now())
        fleet.records.health.put("fleet/east", replace(met, **health))
        fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))

    assert present_hold(fleet).sweeps == 0


@pytest.mark.usefixtures("east")
def test_a_doubted_list_does_not_count(fleet: Fleet) -> None:
    """As long as a resync finds suspiciously many missing, it does not count."""
    fleet.records.strikes.add("fleet/east", SERVICE, "walk")
    fleet.clock.advance(fleet.settings.sweep_interval)
    met = Health("Healthy", swept_at=fleet.clock.now())
    fleet.records.health.put("fleet/east", met)
    fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
    assert present_hold(fleet).sweeps == 0

    fleet.records.strikes.clear("fleet/east", SERVICE)
    fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
    assert present_hold(fleet).sweeps == 1


@pytest.mark.usefixtures("east")
def test_a_release_resets_the_confirmations(fleet: Fleet) -> None:
    """Matches held after a release are counted separately."""
    resync(fleet, 2)
    kept = fleet.records.holds.get("fleet/east", SOURCE)
    assert kept
    assert kept.value.sweeps

    free = release_batch(kept.value, fleet.clock.now(), fleet.settings.hold_window)
    assert (free.sweeps, free.first, free.last, free.looked) == (0, None, None, "")


def test_withdraws_very_many_in_turns(open_fleet: OpenFleet) -> None:
    """After a turn a message continues where the worker stopped."""
    fleet = open_fleet(replace(AGREED, turn=timedelta(0)))
    kube = began(fleet, 10)
    drop(fleet, kube, range(8))
    later(fleet, 3)
    resync(fleet, 3)
    staying = fleet.records.holds.staying
    asked: list[str] = []

    def slow(cluster: str, source: str, *, after: str = "") -> Iterator[object]:
        for each in staying(cluster, source, after=after):
            fleet.clock.advance(timedelta(seconds=1))
            asked.append(after.rpartition("/")[2])
            yield each

    fleet.records.holds.staying = slow  # type: ignore[method-assign,assignment]
    resync(fleet)
    del fleet.records.holds.staying

    assert kube.names(POLICY) == names(range(8, 10))
    assert {"s2", "s3", "s4"} <= set(asked)


def test_is_switched_off(open_fleet: OpenFleet) -> None:
    """If no number of resyncs is enough, held matches wait for a person."""
    fleet = open_fleet(replace(AGREED, hold_agreement=0))
    kube = began(fleet, 10)
    drop(fleet, kube, range(8))
    later(fleet, 3)
    resync(fleet, 8)

    assert kube.names(POLICY) == names(range(2, 10))
    assert fleet.records.timers.get(f"hold/fleet/east/{SOURCE}") is None
