"""Clusters that do not answer: one probe asks for all who wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, UnreachableError
from bellhop.ports.queue import Done
from bellhop.state.delays import probe_timer, retry_timer
from bellhop.state.messages import Apply, Probe, ReadBack, Resync
from bellhop.state.record import DeploymentStatus
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile, source, trigger

CONFIG = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
EAST = "fleet/east"
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
    for _ in range(minutes):
        fleet.clock.advance(MINUTE)
        fleet.pump()


def away(fleet: Fleet, east: FakeKube, count: int = PROFILES) -> None:
    """Have profiles wait for a cluster that does not answer."""
    east.fail_with(DOWN)
    declare(fleet, count)
    fleet.pump()
    assert fleet.records.circuits.get(EAST) is not None


def test_one_asks_for_all_who_wait(fleet: Fleet, east: FakeKube) -> None:
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


def test_all_go_on_once_it_answers(fleet: Fleet, east: FakeKube) -> None:
    """After one probe everything is applied, nothing is left of the circuit, and all is well."""
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
    """What goes to one that answers is applied while the other is away."""
    west = fleet.register("west", env="production")
    away(fleet, east)

    assert len(made(west)) == PROFILES


def test_what_rang_while_it_was_away_is_found(fleet: Fleet, east: FakeKube) -> None:
    """A hint that could not be read back is not kept: the cluster is swept once it answers."""
    fleet.apply(join(source(), trigger(), holder("made", config("own-web"))))
    fleet.pump()
    away(fleet, east, 1)
    east.fail_with(None)
    east.put(service("web"))
    east.fail_with(DOWN)
    key = "/v1/Service/default/web"
    fleet.publisher.publish([ReadBack(EAST, key, "", 0, rang=fleet.clock.now().isoformat())])
    fleet.pump()
    assert fleet.queues["confirm"].receive(9, wait=timedelta(0)) == []
    east.fail_with(None)

    wait(fleet, 2)

    assert made(east) == ["own-0", "own-web"]


def test_a_sweep_that_is_asked_for_probes_at_once(fleet: Fleet, east: FakeKube) -> None:
    """Who knows that the cluster is back need not wait for the next probe."""
    away(fleet, east)
    wait(fleet, 30)
    east.fail_with(None)

    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

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


def test_whoever_refuses_has_answered(fleet: Fleet, east: FakeKube) -> None:
    """Credentials that may not read the namespace close a circuit as well as any."""
    away(fleet, east, 1)
    east.fail_with(None)
    east.fail_with(DeniedError("cannot read Namespace 'kube-system'"), "get")

    wait(fleet, 2)

    assert fleet.records.circuits.get(EAST) is None
    assert made(east) == ["own-0"]


def test_who_begins_to_wait_while_it_closes_is_not_forgotten(fleet: Fleet, east: FakeKube) -> None:
    """An outcome that is written after the probe looked for outcomes is seen by its writer."""
    away(fleet, east, 1)
    declare(fleet, 2)
    deliver(fleet, "deploy")
    endings = fleet.stages["deploy"]._execute._endings  # type: ignore[attr-defined]
    wait_for = endings.wait

    def late(work: Any, error: Any) -> bool:
        east.fail_with(None)
        fleet.clock.advance(MINUTE)
        fleet.stages["sweep"].handle(Probe(EAST))
        return bool(wait_for(work, error))

    endings.wait = late
    deliver(fleet, "apply")
    endings.wait = wait_for
    fleet.pump()

    assert made(east) == ["own-0", "own-1"]


def deliver(fleet: Fleet, inbox: str) -> None:
    while deliveries := fleet.queues[inbox].receive(1, wait=timedelta(0)):
        fleet.work(inbox, deliveries)


@pytest.mark.parametrize("step", ["publish", "delete"])
def test_who_dies_while_closing_is_followed(fleet: Fleet, east: FakeKube, step: str) -> None:
    """Between closing, telling and forgetting, the timer goes on until all is done."""
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
        # Nobody gives the message back: the timer alone is left.
        fleet.queues["probe"].settle(delivery, Done())

    wait(fleet, 3)

    assert made(east) == ["own-0", "own-1", "own-2"]
    assert fleet.records.circuits.get(EAST) is None


def test_one_that_goes_away_again_while_closing_stays_open(fleet: Fleet, east: FakeKube) -> None:
    """Who meets silence before the probe has ended opens it anew, and the probe leaves it so."""
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

    kept = fleet.records.circuits.get(EAST)
    assert kept
    assert not kept.value.closing
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
    """What is to be removed from a cluster that is away is removed once it answers."""
    declare(fleet, 2)
    fleet.pump()
    assert made(east) == ["own-0", "own-1"]
    east.fail_with(DOWN)
    fleet.declare.delete([("ClusterProfile", "", "own-1")])
    fleet.pump()
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
    """Who waits already, and is asked again, has nothing new to say."""
    away(fleet, east, 1)
    fleet.store.counts.clear()
    fleet.stages["deploy"].handle(Apply("", "", "own-0", EAST))

    assert fleet.store.counts["put"] == 0
