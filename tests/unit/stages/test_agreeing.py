"""What is held and gone is let go once sweeps in a row agree, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.events.deletion_guard import released
from bellhop.state.messages import CheckDeletionGuard, Resync
from bellhop.state.record import Health
from tests.fakes.fleet import SERVICE, Fleet
from tests.fakes.kube import FakeKube
from tests.unit.stages.test_guard import (
    GUARDED,
    SOURCE,
    began,
    drop,
    held,
    hold,
    later,
    names,
    policies,
    ringing,
    selecting,
)

AGREED = replace(GUARDED, hold_agreement=2)
"""Two sweeps are to agree, after one that may have looked too early."""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    one = Fleet(tmp_path, AGREED)
    yield one
    one.close()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which eight of ten Services are gone, six of which are held."""
    kube = began(fleet, 10)
    drop(fleet, kube, range(8))
    later(fleet, 3)
    assert held(fleet) == names(range(2, 8))
    return kube


def sweep(fleet: Fleet, times: int = 1) -> None:
    """Let the schedule sweep, and those who count what ended look at it."""
    for _ in range(times):
        fleet.clock.advance(fleet.settings.sweep_interval + timedelta(minutes=2))
        fleet.pump()


def test_lets_go_what_sweeps_in_a_row_find_gone(fleet: Fleet, east: FakeKube) -> None:
    """Not before so many have looked since it went, and nobody has to ask for it."""
    sweep(fleet, 2)
    assert policies(east) == names(range(2, 10))

    sweep(fleet, 2)
    assert policies(east) == names(range(8, 10))
    assert hold(fleet) is None
    told = [each.detail for each in fleet.ledger() if each.what == "unmatched"]
    assert told[-6:] == ["resyncs agree that it is deleted"] * 6


@pytest.mark.usefixtures("east")
def test_a_sweep_counts_once(fleet: Fleet) -> None:
    """However often it is weighed what a sweep said, it is one sweep."""
    sweep(fleet)
    for _ in range(6):
        fleet.publisher.publish([CheckDeletionGuard("fleet/east", SOURCE)])
        fleet.pump()

    found = hold(fleet)
    assert found
    assert found.sweeps == 1
    assert held(fleet) == names(range(2, 8))


def test_does_not_let_go_what_is_there_and_matches_no_more(tmp_path: Path) -> None:
    """Sweeps go on agreeing with a source that somebody wrote wrong: a person has to say it."""
    fleet = Fleet(tmp_path, AGREED)
    kube = began(fleet, 10)
    fleet.apply(selecting("'no'"))
    fleet.pump()
    later(fleet, 3)
    sweep(fleet, 12)

    assert policies(kube) == names(range(2, 10))
    assert held(fleet) == names(range(2, 10))
    fleet.apply(selecting())
    fleet.pump()
    assert policies(kube) == names(range(10))
    fleet.close()


def test_does_not_let_go_what_another_kind_in_a_source_hides(tmp_path: Path) -> None:
    """No sweep looks for objects of a kind that the source asks for no more."""
    fleet = Fleet(tmp_path, AGREED)
    kube = began(fleet, 10)
    fleet.apply(selecting(kind="Secret"))
    fleet.pump()
    later(fleet, 3)
    before = held(fleet)
    sweep(fleet, 6)

    assert before
    assert held(fleet) == before
    assert set(before) <= set(policies(kube))
    fleet.close()


def test_counts_anew_for_what_went_later(fleet: Fleet, east: FakeKube) -> None:
    """An object that went while sweeps agreed about others waits for as many of its own."""
    sweep(fleet, 2)
    drop(fleet, east, range(8, 9))
    sweep(fleet, 2)
    assert held(fleet) == ["s8"]
    assert policies(east) == ["s8", "s9"]

    sweep(fleet, 4)
    assert policies(east) == ["s9"]
    assert hold(fleet) is None


def test_what_came_back_meanwhile_stays(fleet: Fleet, east: FakeKube) -> None:
    """An object that is there when sweeps agree about the others has its add-ons."""
    sweep(fleet, 2)
    fleet.write("east", ringing(4))
    sweep(fleet, 2)

    assert policies(east) == ["s4", *names(range(8, 10))]
    assert hold(fleet) is None


def test_what_comes_back_and_is_not_judged_yet_stays(fleet: Fleet, east: FakeKube) -> None:
    """What a sweep has just found there is not gone, though its match says still that it ended."""
    sweep(fleet, 3)
    assert held(fleet) == names(range(2, 8))
    fleet.clock.advance(fleet.settings.sweep_interval + timedelta(minutes=2))
    east.put(ringing(4))
    fleet.publisher.publish([Resync("fleet/east")])
    fleet.work("sweep", fleet.queues["sweep"].receive(50, wait=timedelta(0)))
    fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
    assert held(fleet) == ["s4"]

    fleet.pump()
    assert policies(east) == ["s4", *names(range(8, 10))]


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    "health",
    [
        pytest.param({"unseen": (SERVICE,)}, id="a kind that could not be listed"),
        pytest.param({"state": "Down"}, id="a cluster that does not answer"),
    ],
)
def test_a_sweep_that_did_not_see_all_says_nothing(fleet: Fleet, health: dict[str, object]) -> None:
    """An error is never an empty answer, for what is held either."""
    for _ in range(8):
        fleet.clock.advance(fleet.settings.sweep_interval)
        met = Health("Healthy", swept_at=fleet.clock.now())
        fleet.records.health.put("fleet/east", replace(met, **health))
        fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))

    found = hold(fleet)
    assert found
    assert found.sweeps == 0


@pytest.mark.usefixtures("east")
def test_a_list_that_is_doubted_says_nothing(fleet: Fleet) -> None:
    """As long as a sweep finds suspiciously much missing, it does not count."""
    fleet.records.strikes.add("fleet/east", SERVICE, "walk")
    fleet.clock.advance(fleet.settings.sweep_interval)
    met = Health("Healthy", swept_at=fleet.clock.now())
    fleet.records.health.put("fleet/east", met)
    fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
    found = hold(fleet)
    assert found
    assert found.sweeps == 0

    fleet.records.strikes.clear("fleet/east", SERVICE)
    fleet.stages["evaluate"].handle(CheckDeletionGuard("fleet/east", SOURCE))
    found = hold(fleet)
    assert found
    assert found.sweeps == 1


@pytest.mark.usefixtures("east")
def test_a_release_ends_what_sweeps_had_agreed_on(fleet: Fleet) -> None:
    """What is held after a release is another matter, and is counted anew."""
    sweep(fleet, 2)
    kept = fleet.records.holds.get("fleet/east", SOURCE)
    assert kept
    assert kept.value.sweeps

    free = released(kept.value, fleet.clock.now(), fleet.settings.hold_window)
    assert (free.sweeps, free.first, free.last, free.looked) == (0, None, None, "")


def test_lets_go_of_very_much_turn_by_turn(tmp_path: Path) -> None:
    """Whoever has worked for a turn leaves the rest to a message, which goes on where it was."""
    fleet = Fleet(tmp_path, replace(AGREED, turn=timedelta(0)))
    kube = began(fleet, 10)
    drop(fleet, kube, range(8))
    later(fleet, 3)
    sweep(fleet, 3)
    staying = fleet.records.holds.staying
    asked: list[str] = []

    def slow(cluster: str, source: str, *, after: str = "") -> Iterator[object]:
        for each in staying(cluster, source, after=after):
            fleet.clock.advance(timedelta(seconds=1))
            asked.append(after.rpartition("/")[2])
            yield each

    fleet.records.holds.staying = slow  # type: ignore[method-assign,assignment]
    sweep(fleet)
    del fleet.records.holds.staying

    assert policies(kube) == names(range(8, 10))
    assert {"s2", "s3", "s4"} <= set(asked)
    fleet.close()


def test_is_switched_off(tmp_path: Path) -> None:
    """Where no number of sweeps is enough, what is held waits for a person."""
    fleet = Fleet(tmp_path, replace(AGREED, hold_agreement=0))
    kube = began(fleet, 10)
    drop(fleet, kube, range(8))
    later(fleet, 3)
    sweep(fleet, 8)

    assert policies(kube) == names(range(2, 10))
    assert fleet.records.timers.get(f"hold/fleet/east/{SOURCE}") is None
    fleet.close()
