"""Clusters that do not answer: one probe asks for all who wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.errors import DeniedError, UnreachableError
from bellhop.ports.queue import Done
from bellhop.state.delays import probe_timer, retry_timer
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import Apply, Probe, ReadBack
from tests.fakes.fleet import EAST, Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger

DOWN = UnreachableError("cannot apply to 'fleet/east': it takes no connection in time")
PROFILES = 40
MINUTE = timedelta(minutes=1)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    kube = fleet.register("east", env="production")
    fleet.pump()
    return kube


def declare(fleet: Fleet, count: int = PROFILES) -> None:
    names = [f"own-{number}" for number in range(count)]
    fleet.apply(join(*(join(profile(name=each), holder(each, config(each))) for each in names)))


def made(kube: FakeKube) -> list[str]:
    found = {each["metadata"]["name"] for each in kube.objects(CONFIG)}
    return sorted(name for name in found if name.startswith("own-"))


def outcomes(fleet: Fleet) -> list[DeploymentStatus]:
    return list(fleet.records.outcomes.of(EAST))


def wait(fleet: Fleet, minutes: int) -> None:
    """Let time pass, a minute at a time."""
    fleet.wait(MINUTE, minutes)


def away(fleet: Fleet, east: FakeKube, count: int = PROFILES) -> None:
    """Have profiles wait for a cluster that does not answer."""
    east.fail_with(DOWN)
    declare(fleet, count)
    fleet.pump()
    assert fleet.records.circuits.get(EAST) is not None


def test_one_probe_calls_for_all_that_wait(fleet: Fleet, east: FakeKube) -> None:
    """Of forty profiles one meets the silence; the others wait, and a minute costs a probe."""
    east.calls.clear()
    away(fleet, east)

    assert len(east.calls) <= 4
    assert {(each.phase, each.reason) for each in outcomes(fleet)} == {("Failed", "Away")}
    assert len(outcomes(fleet)) == PROFILES
    timers = [fleet.records.timers.get(retry_timer(EAST, each.profile)) for each in outcomes(fleet)]
    assert timers == [None] * PROFILES

    east.calls.clear()
    wait(fleet, 60)
    assert 20 <= len(east.calls) <= 70
    assert {call.verb for call in east.calls} == {"get"}
    assert [fleet.queues[name].list() for name in fleet.queues] == [[]] * len(fleet.queues)


def test_all_continue_once_it_answers(fleet: Fleet, east: FakeKube) -> None:
    """After one probe everything is applied, the circuit is deleted, and the cluster is healthy."""
    away(fleet, east)
    wait(fleet, 10)
    east.fail_with(None)

    wait(fleet, 2)

    assert len(made(east)) == PROFILES
    assert {each.phase for each in outcomes(fleet)} == {"Provisioned"}
    assert fleet.records.circuits.get(EAST) is None
    assert fleet.records.timers.get(probe_timer(EAST)) is None
    assert fleet.records.health.get(EAST).value.state == "Healthy"


def test_other_clusters_are_not_concerned(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that answers is deployed to while another does not."""
    west = fleet.register("west", env="production")
    away(fleet, east)

    assert len(made(west)) == PROFILES


def test_events_during_an_outage_are_found(fleet: Fleet, east: FakeKube) -> None:
    """A hint that could not be read back is dropped: the cluster is resynced once it answers."""
    fleet.deploy(join(source(), trigger(), holder("made", config("own-web"))))
    away(fleet, east, 1)
    east.fail_with(None)
    east.put(service("web"))
    east.fail_with(DOWN)
    key = "/v1/Service/default/web"
    fleet.publisher.publish([ReadBack(EAST, key, "", 0, event_at=fleet.clock.now().isoformat())])
    fleet.pump()
    assert fleet.queues["confirm"].receive(9, wait=timedelta(0)) == []
    east.fail_with(None)

    wait(fleet, 2)

    assert made(east) == ["own-0", "own-web"]


def test_a_requested_resync_probes_at_once(fleet: Fleet, east: FakeKube) -> None:
    """A user who knows that the cluster answers need not wait for the next probe."""
    away(fleet, east)
    wait(fleet, 30)
    east.fail_with(None)

    fleet.resync()

    assert len(made(east)) == PROFILES


def test_a_call_that_fails_where_the_cluster_answers_is_its_own_affair(
    fleet: Fleet, east: FakeKube
) -> None:
    """A webhook that hangs, say, opens nothing: others are applied, and it is tried by itself."""
    east.fail_with(DOWN, "apply")
    declare(fleet, 1)
    fleet.pump()

    assert fleet.records.circuits.get(EAST) is None
    [outcome] = outcomes(fleet)
    assert outcome.retry_at is not None
    east.fail_with(None)
    wait(fleet, 2)
    assert made(east) == ["own-0"]


def test_a_refusal_is_an_answer(fleet: Fleet, east: FakeKube) -> None:
    """Credentials that may not read the namespace close a circuit as well as any."""
    away(fleet, east, 1)
    east.fail_with(None)
    east.fail_with(DeniedError("cannot read Namespace 'kube-system'"), "get")

    wait(fleet, 2)

    assert fleet.records.circuits.get(EAST) is None
    assert made(east) == ["own-0"]


def test_a_profile_that_waits_while_it_closes_is_published(fleet: Fleet, east: FakeKube) -> None:
    """An outcome that is written after the probe looked for outcomes is seen by its writer."""
    away(fleet, east, 1)
    declare(fleet, 2)
    deliver(fleet, "deploy")
    statuses = fleet.reconciler._statuses
    wait_for = statuses.record_wait

    def late(work: Any, error: Any) -> bool:
        east.fail_with(None)
        fleet.clock.advance(MINUTE)
        fleet.stages["sweep"].handle(Probe(EAST))
        return bool(wait_for(work, error))

    statuses.record_wait = late
    deliver(fleet, "apply")
    statuses.record_wait = wait_for
    fleet.pump()

    assert made(east) == ["own-0", "own-1"]


def deliver(fleet: Fleet, inbox: str) -> None:
    while deliveries := fleet.queues[inbox].receive(1, wait=timedelta(0)):
        fleet.work(inbox, deliveries)


@pytest.mark.parametrize("step", ["publish", "delete"])
def test_a_death_while_closing_is_continued(fleet: Fleet, east: FakeKube, step: str) -> None:
    """Between closing, publishing and deleting, the timer continues until all is done."""
    away(fleet, east, 3)
    east.fail_with(None)
    victims: dict[str, tuple[Any, str]] = {
        "publish": (fleet.queues["apply"], "publish"),
        "delete": (fleet.store, "delete"),
    }
    target, method = victims[step]
    spared: Callable[..., Any] = getattr(target, method)

    def die(*arguments: Any, **named: Any) -> Any:
        if step == "publish" or arguments[0] == "circuit":
            raise SystemExit(9)
        return spared(*arguments, **named)

    setattr(target, method, die)
    fleet.clock.advance(MINUTE)
    with pytest.raises(SystemExit):
        fleet.pump()
    setattr(target, method, spared)
    fleet.clock.advance(10 * MINUTE)
    for delivery in fleet.queues["probe"].receive(9, wait=timedelta(0)):
        # Nobody gives the message back: only the timer is left.
        fleet.queues["probe"].settle(delivery, Done())

    wait(fleet, 3)

    assert made(east) == ["own-0", "own-1", "own-2"]
    assert fleet.records.circuits.get(EAST) is None


def test_a_circuit_opened_again_while_closing_stays_open(fleet: Fleet, east: FakeKube) -> None:
    """A worker without an answer opens it before the probe has ended, and it stays open."""
    away(fleet, east, 2)
    sweep = fleet.stages["sweep"]
    publish = fleet.publisher.publish

    def again(messages: Any) -> None:
        publish(messages)
        fleet.publisher.publish = publish  # type: ignore[method-assign]
        east.fail_with(DOWN)
        deliver(fleet, "apply")

    east.fail_with(None)
    fleet.publisher.publish = again  # type: ignore[method-assign]
    sweep.handle(Probe(EAST))

    kept = require_value(fleet.records.circuits.get(EAST))
    assert not kept.closing
    assert fleet.records.timers.get(probe_timer(EAST)) is not None
    east.fail_with(None)
    wait(fleet, 2)
    assert made(east) == ["own-0", "own-1"]


def test_a_probe_that_comes_late_does_nothing(fleet: Fleet, east: FakeKube) -> None:
    """A week later, or twice, a probe finds no circuit and calls nobody."""
    east.calls.clear()
    fleet.publisher.publish([Probe(EAST)])
    fleet.pump()

    assert east.calls == []


def test_a_withdrawal_waits_too(fleet: Fleet, east: FakeKube) -> None:
    """Objects in a cluster that does not answer are removed once it does."""
    declare(fleet, 2)
    fleet.pump()
    assert made(east) == ["own-0", "own-1"]
    east.fail_with(DOWN)
    fleet.delete("ClusterProfile", "own-1")
    east.fail_with(None)

    wait(fleet, 2)

    assert made(east) == ["own-0"]
    assert [each.profile for each in outcomes(fleet)] == ["own-0"]


def test_a_cluster_that_is_forgotten_takes_its_circuit_along(fleet: Fleet, east: FakeKube) -> None:
    """Nobody probes a cluster that is not registered."""
    away(fleet, east, 2)
    fleet.declare.deregister(EAST)
    wait(fleet, 30)

    assert fleet.records.circuits.get(EAST) is None
    assert fleet.records.timers.get(probe_timer(EAST)) is None


def test_a_message_that_comes_again_writes_nothing(fleet: Fleet, east: FakeKube) -> None:
    """A profile that waits already has nothing new to record."""
    away(fleet, east, 1)
    fleet.store.counts.clear()
    fleet.stages["deploy"].handle(Apply("", "", "own-0", EAST))

    assert fleet.store.counts["put"] == 0
