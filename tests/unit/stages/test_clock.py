"""A clock that was wrong for a while, and is right again: all goes on as if it never had been."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.engine.pacing import probe_timer, sweep_timer
from bellhop.errors import UnreachableError
from bellhop.model.record import Inventory
from bellhop.ports.store import ANY
from bellhop.records.timers import SKEW, Timer
from bellhop.stages.lease import UNKNOWN, Leases
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import Fleet

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
CLUSTER = "fleet/east"


@pytest.fixture
def clock(fleet: Fleet) -> FakeClock:
    return fleet.clock


@pytest.mark.parametrize("by", [HOUR, DAY, 365 * DAY])
def test_a_sweep_and_a_probe_that_were_due_meanwhile_come_soon(
    fleet: Fleet, clock: FakeClock, by: timedelta
) -> None:
    """They are set again for as long after now as they were set for."""
    kube = fleet.register("east", env="production")
    fleet.apply_example("services")
    fleet.pump()

    clock.jump(by)
    kube.fail_with(UnreachableError("does not answer"))
    fleet.pump()
    clock.advance(20 * SECOND)
    kube.fail_with(None)
    clock.jump(-by)
    fleet.pump()

    pause = fleet.settings.sweep_interval * 1.1
    for timer in (sweep_timer(CLUSTER), probe_timer(CLUSTER)):
        kept = fleet.records.timers.get(timer)
        assert kept
        assert kept.value.at <= clock.now() + pause
    clock.advance(pause)
    fleet.pump()
    assert fleet.records.circuits.get(CLUSTER) is None
    health = fleet.records.health.get(CLUSTER).value
    assert (health.state, health.swept_at) == ("Healthy", clock.now())


def test_what_is_set_by_a_clock_that_is_behind_comes_at_once(
    fleet: Fleet, clock: FakeClock
) -> None:
    """And while it is behind, what was set before comes by its own pause."""
    fleet.register("east", env="production")
    fleet.pump()
    clock.jump(-DAY)
    fleet.pump()
    kept = fleet.records.timers.get(sweep_timer(CLUSTER))

    assert kept
    assert kept.value.at <= clock.now() + fleet.settings.sweep_interval * 1.1
    clock.jump(DAY)
    assert kept.value.at < clock.now()


def test_a_timer_of_an_earlier_version_stays_as_it_is(fleet: Fleet, clock: FakeClock) -> None:
    """Nobody knows how long its pause is; one that is set by a clock a little ahead stays, too."""
    at = clock.now() + 40 * DAY
    fleet.records.timers._put(Timer("old", at, {}), expect=ANY)
    with clock.behind(-SKEW / 2):
        fleet.records.timers.set("new", at, {})

    assert fleet.records.timers.pull_in(clock.now()) == 0
    assert [each and each.value.at for each in map(fleet.records.timers.get, ("old", "new"))] == [
        at,
        at,
    ]


def test_a_lease_of_a_clock_that_was_ahead_is_free(fleet: Fleet, clock: FakeClock) -> None:
    """No worker may be silent for as long as it says."""
    leases = Leases(fleet.records, fleet.settings, UNKNOWN)
    until = clock.now() + DAY + fleet.settings.visibility

    leases.refuse_busy(Inventory(CLUSTER, "p", {}, "me.1", until))
