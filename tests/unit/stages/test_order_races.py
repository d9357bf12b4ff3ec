"""Profiles in order, at the moments at which others are quicker, or die."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.state.messages import Apply, Resolve
from bellhop.state.record import DeploymentStatus, Inventory
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.mortal import Killed
from tests.unit.stages.test_order import EAST, acts, names, phase, written


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def test_what_it_stands_on_is_not_withdrawn_under_it(fleet: Fleet, east: FakeKube) -> None:
    """Who withdraws it cannot see yet who is about to be brought; that one sees it itself."""
    fleet.apply(written("base"))
    fleet.pump()
    noted = acts(east)
    fleet.apply(written("apps", "base"))
    put, deploy = fleet.records.inventories.put, fleet.stages["deploy"]

    def late(inventory: Inventory, **how: Any) -> str:
        if inventory.profile == "apps":
            fleet.records.inventories.put = put  # type: ignore[method-assign]
            fleet.declare.delete([("ClusterProfile", "", "base")])
            deploy.handle(Resolve("base"))
            deploy.handle(Apply("", "", "base", EAST))
        return put(inventory, **how)

    fleet.records.inventories.put = late  # type: ignore[method-assign]
    fleet.pump()

    assert noted == ["-base"]
    assert phase(fleet, "apps") == ("Provisioning", "Waiting")
    kept = fleet.records.inventories.get(EAST, "apps")
    assert kept is None or kept.value.held == {}


def test_who_waits_looks_again_once_that_is_noted(fleet: Fleet, east: FakeKube) -> None:
    """What it waits for may have been done before anybody could see that it waits."""
    fleet.apply(written("base"))
    fleet.pump()
    fleet.apply(written("apps", "base", v="2"), written("base", v="2"))
    deploy, put = fleet.stages["deploy"], fleet.records.waiting.put
    deploy.handle(Resolve("apps"))

    def late(*args: Any) -> None:
        fleet.records.waiting.put = put  # type: ignore[method-assign]
        deploy.handle(Apply("", "", "base", EAST))
        put(*args)

    fleet.records.waiting.put = late  # type: ignore[method-assign]
    deploy.handle(Apply("", "", "apps", EAST))

    assert names(east) == ["apps", "base"]


def test_what_was_withdrawn_and_is_still_there_is_stood_on(fleet: Fleet, east: FakeKube) -> None:
    """Nobody declares any more that it is; that they once did is not forgotten."""
    fleet.apply(written("apps", "base"), written("base"))
    fleet.pump()
    noted, deploy = acts(east), fleet.stages["deploy"]
    fleet.declare.delete([("ClusterProfile", "", "apps")])
    deploy.handle(Resolve("base"))
    fleet.declare.delete([("ClusterProfile", "", "base")])
    deploy.handle(Resolve("base"))
    deploy.handle(Apply("", "", "base", EAST))
    assert noted == []

    fleet.pump()
    assert noted == ["-apps", "-base"]


def test_who_comes_back_while_it_goes_stands_on_others_again(fleet: Fleet, east: FakeKube) -> None:
    """Whoever is about to note that it has gone strikes nothing out that counts."""
    fleet.apply(written("apps", "base"), written("base"))
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "apps")])
    deploy, get = fleet.stages["deploy"], fleet.records.needing.get

    def late(*args: Any) -> Any:
        fleet.records.needing.get = get  # type: ignore[method-assign]
        fleet.apply(written("apps", "base"))
        deploy.handle(Resolve("apps"))
        deploy.handle(Apply("", "", "apps", EAST))
        return get(*args)

    fleet.records.needing.get = late  # type: ignore[method-assign]
    fleet.pump()
    assert names(east) == ["apps", "base"]
    fleet.declare.delete([("ClusterProfile", "", "base")])
    fleet.pump()

    assert names(east) == ["apps", "base"]


def test_who_dies_as_it_is_gone_leaves_nobody_waiting(fleet: Fleet, east: FakeKube) -> None:
    """Whoever waits for that is told before nobody knows any more that it was there."""
    fleet.apply(written("apps", "base"), written("base"))
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "base")])
    fleet.pump()
    delete = fleet.records.profiles.delete

    def dying(*which: str, **how: Any) -> bool:
        gone = delete(*which, **how)
        if "apps" in which:
            fleet.records.profiles.delete = delete  # type: ignore[method-assign]
            raise Killed
        return gone

    fleet.records.profiles.delete = dying  # type: ignore[method-assign]
    fleet.declare.delete([("ClusterProfile", "", "apps")])
    with pytest.raises(Killed):
        fleet.pump()
    fleet.clock.advance(rig.VISIBILITY)
    fleet.pump()

    assert names(east) == []
    assert list(fleet.records.outcomes.of(EAST)) == []


@pytest.mark.parametrize("more", ["", "syncMode: OneTime"])
def test_who_comes_to_wait_while_it_is_brought_is_told(
    fleet: Fleet, east: FakeKube, more: str
) -> None:
    """Whoever brings it read it before anybody waited for it."""
    fleet.apply(written("base", more=more))
    apply, came = east.apply, [written("apps", "base")]

    def late(manifest: dict[str, Any], **how: Any) -> Any:
        while came:
            fleet.apply(came.pop())
            for inbox in ("deploy", "apply"):
                for each in fleet.queues[inbox].receive(9, wait=timedelta(0)):
                    fleet.work(inbox, [each])
            assert phase(fleet, "apps")[1] == "Waiting"
        return apply(manifest, **how)

    east.apply = late  # type: ignore[method-assign]
    fleet.pump()

    assert names(east) == ["apps", "base"]


def test_who_waits_is_told_once_it_can_see_that_it_is_done(fleet: Fleet, east: FakeKube) -> None:
    """Whoever is told before would wait again, and nobody would tell it any more."""
    fleet.apply(written("apps", "base"))
    fleet.pump()
    put = fleet.records.outcomes.put

    def late(outcome: DeploymentStatus, **how: Any) -> str:
        if outcome.profile == "base":
            for each in fleet.queues["apply"].receive(9, wait=timedelta(0)):
                fleet.work("apply", [each])
        return put(outcome, **how)

    fleet.records.outcomes.put = late  # type: ignore[method-assign]
    fleet.apply(written("base"))
    fleet.pump()

    assert names(east) == ["apps", "base"]


def test_who_dies_having_changed_leaves_no_trace_of_what_it_needed(fleet: Fleet) -> None:
    """Its outcome, which told whom it had needed, is written anew by then."""
    fleet.register("east", env="production")
    fleet.apply(written("apps", "base"), written("base"))
    fleet.pump()
    put = fleet.records.outcomes.put

    def dying(outcome: DeploymentStatus, **how: Any) -> str:
        put(outcome, **how)
        fleet.records.outcomes.put = put  # type: ignore[method-assign]
        raise Killed

    fleet.records.outcomes.put = dying  # type: ignore[method-assign]
    fleet.apply(written("apps", v="2"))
    with pytest.raises(Killed):
        fleet.pump()
    fleet.clock.advance(rig.VISIBILITY)
    fleet.pump()

    assert phase(fleet, "apps") == ("Provisioned", "")
    assert list(fleet.records.needing.of(EAST, "base")) == []
