"""A clock that was wrong for a while, and is right again: all goes on as if it never had been."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.deploy.lease import UNKNOWN, Leases
from bellhop.errors import MissingError, UnreachableError
from bellhop.extras.health import state
from bellhop.state.blob_garbage import blob_name
from bellhop.state.delays import probe_timer, sweep_timer
from bellhop.state.deployment import Inventory
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.match import Selected, Selection
from bellhop.state.timers import SKEW
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import POLICY, SERVICE, Fleet, OpenFleet, cloud_event
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import join, trigger
from tests.unit.events.test_deletion_guard import GUARDED, began, drop, later, names
from tests.unit.ingest.test_cloud_events import EACH, SOURCE

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
CLUSTER = "fleet/east"

SHORT_LIVED = join(
    """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: heard, annotations: {bellhop.dev/cloud-event-ttl: 2h}}
spec:
  messagingMatchCriteria: [{cloudEventType: example.build.built}]
""",
    trigger("told", origin="heard"),
)


@pytest.fixture
def clock(fleet: Fleet) -> FakeClock:
    return fleet.clock


@pytest.mark.parametrize("by", [HOUR, DAY, 365 * DAY])
def test_a_resync_and_a_probe_that_were_due_meanwhile_come_soon(
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


def test_a_timer_that_a_clock_a_little_ahead_has_set_stays(fleet: Fleet, clock: FakeClock) -> None:
    """Two clocks may differ by so much with nothing to be put right."""
    at = clock.now() + 40 * DAY
    with clock.behind(-SKEW / 2):
        fleet.records.timers.set("new", at, {})

    fleet.schedule.pull_in()
    kept = fleet.records.timers.get("new")
    assert kept
    assert kept.value.at == at


def test_what_a_clock_that_was_ahead_has_begun_is_taken_up(fleet: Fleet, clock: FakeClock) -> None:
    """A change that was recorded in the future has no worker any more."""
    clock.jump(DAY)
    fleet.records.pending.put("change", {"keys": []})
    clock.jump(-DAY)

    assert list(fleet.records.pending.abandoned()) == ["change"]


@pytest.mark.parametrize("by", [-DAY, DAY])
def test_an_event_that_came_while_the_clock_was_wrong_ends_in_time(
    fleet: Fleet, clock: FakeClock, by: timedelta
) -> None:
    """At once if it came from a past that is long over, and after twice its time at most."""
    fleet.register("east", env="production")
    fleet.deploy(SHORT_LIVED)
    with clock.behind(-by):
        assert fleet.tell("east", cloud_event("web")).status == 200
        fleet.pump()
    fleet.pump()
    left = []
    for _ in range(4):
        clock.advance(HOUR)
        fleet.pump()
        left.append(len(events(fleet)))

    # An event from the future has no known time.
    assert left == ([1, 1, 1, 0] if by > timedelta(0) else [0, 0, 0, 0])


def doubted(fleet: Fleet, off: timedelta) -> None:
    """Have it written that the clock jumped, as `serve` does."""
    now, seconds = fleet.clock.now(), off.total_seconds()
    fleet.records.pulses.put(WorkerHeartbeat(now, now, jumped_at=now, jumped=seconds, off=seconds))


def test_an_event_outlasts_a_clock_that_is_ahead_for_a_moment(
    fleet: Fleet, clock: FakeClock
) -> None:
    """And ends in its time; or a day later, where the clock stays where it jumped to."""
    fleet.register("east", env="production")
    fleet.apply(SHORT_LIVED)
    fleet.tell("east", cloud_event("web"))
    fleet.pump()
    clock.jump(60 * DAY)
    doubted(fleet, 60 * DAY)
    fleet.pump()
    meanwhile = len(events(fleet))
    clock.jump(-60 * DAY)
    doubted(fleet, 0 * DAY)
    left = []
    for _ in range(3):
        fleet.pump()
        left.append(len(events(fleet)))
        clock.advance(HOUR)

    assert (meanwhile, left) == (1, [1, 1, 0])
    doubted(fleet, 60 * DAY)
    assert fleet.records.pulses.doubts(clock.now() + DAY - SECOND)
    assert not fleet.records.pulses.doubts(clock.now() + DAY)


def test_a_redelivery_restores_nothing_after_a_clock_that_was_ahead(
    fleet: Fleet, clock: FakeClock
) -> None:
    """Add-ons that a later event withdrew stay away, though its records would have expired."""
    kube = fleet.register("east", env="production")
    fleet.apply(SOURCE, EACH)
    built, removed = cloud_event("web"), cloud_event("web", "removed")
    seen = []
    for event in (built, removed):
        fleet.tell("east", event)
        fleet.pump()
        seen.append(len(kube.objects(CONFIG)))
    with clock.behind(-60 * DAY):
        fleet.pump()
        fleet.store._store.delete_expired()
    clock.advance(60 * SECOND)
    fleet.tell("east", built)
    fleet.pump()

    assert [*seen, len(kube.objects(CONFIG))] == [1, 0, 0]


def test_a_blob_outlasts_a_clock_that_is_ahead_for_a_moment(fleet: Fleet, clock: FakeClock) -> None:
    """It is kept for a day that no record names, and a jump of the clock is no day."""
    trash, name = fleet.records._payloads.trash, blob_name("no", "record")
    trash._blobs.put(name, b"payload")
    trash.put(name, "no", "record", clock.now())
    fleet.pump()
    clock.jump(60 * DAY)
    doubted(fleet, 60 * DAY)
    fleet.pump()
    meanwhile = trash._blobs.get(name)
    clock.jump(-60 * DAY)
    doubted(fleet, 0 * DAY)
    fleet.pump()
    clock.advance(DAY)
    fleet.pump()

    assert meanwhile == b"payload"
    with pytest.raises(MissingError):
        trash._blobs.get(name)


def events(fleet: Fleet) -> list[ObjectKey]:
    heads = fleet.records.observations.heads(CLUSTER, CLOUD_EVENT)
    return [each.key for each in heads if not each.gone]


def test_a_cluster_is_away_since_now_at_the_latest(fleet: Fleet, clock: FakeClock) -> None:
    """A clock that was ahead has said otherwise."""
    kube = fleet.register("east", env="production")
    fleet.apply_example("services")
    kube.fail_with(UnreachableError("does not answer"))
    with clock.behind(-DAY):
        fleet.pump()
        assert fleet.records.circuits.get(CLUSTER)
    fleet.pump()
    clock.advance(HOUR)
    fleet.pump()

    kept = fleet.records.circuits.get(CLUSTER)
    assert kept
    assert kept.value.since <= clock.now()


def test_matches_held_by_a_clock_that_was_ahead_are_released_in_time(open_fleet: OpenFleet) -> None:
    """Its hold waits no longer than one that was written just now."""
    fleet = open_fleet(replace(GUARDED, hold_share=0.25, hold_from=4))
    east = began(fleet, 8)
    with fleet.clock.behind(-DAY):
        drop(fleet, east, range(2))
    assert east.names(POLICY) == names(range(1, 8))

    later(fleet, 5)
    assert east.names(POLICY) == names(range(2, 8))
    assert list(fleet.records.holds.all()) == []


def test_a_lease_of_a_clock_that_was_ahead_is_free(fleet: Fleet, clock: FakeClock) -> None:
    """No worker may be silent for as long as it says."""
    leases = Leases(fleet.records, fleet.settings, UNKNOWN)
    until = clock.now() + DAY + fleet.settings.visibility

    leases.check_free(Inventory(CLUSTER, "p", {}, "me.1", until))


def test_an_unhealthy_condition_since_the_future_counts(clock: FakeClock) -> None:
    """A clock that was ahead has said since when; patience does not wait for that time."""
    now = clock.now()
    found = Selected(ObjectKey(SERVICE, "default", "web"), "", now + DAY)
    selection = Selection(CLUSTER, "check", now, selected=(found,))

    assert state.counting(selection, timedelta(minutes=5), now) == [found]
