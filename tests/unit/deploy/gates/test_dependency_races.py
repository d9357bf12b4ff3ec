"""Profiles in order, at the moments at which others are quicker, or die."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.state.deployment import DeploymentStatus, Inventory
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.hooks import before_next
from tests.fakes.kube import FakeKube
from tests.fakes.mortal import Killed
from tests.unit.deploy.gates.test_dependencies import phase, record_acts, written


def test_a_dependency_is_not_removed_while_a_dependent_is_deployed(
    fleet: Fleet, east: FakeKube
) -> None:
    """The worker that removes it cannot see the other yet; the other one sees the removal."""
    fleet.deploy(written("base"))
    noted = record_acts(east)
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
    """Its dependency may have been deployed before its wait was visible."""
    fleet.deploy(written("base"))
    fleet.apply(written("apps", "base", v="2"), written("base", v="2"))
    deploy = fleet.stages["deploy"]
    deploy.handle(Resolve("apps"))

    def late() -> None:
        deploy.handle(Apply("", "", "base", EAST))

    before_next(fleet.records.waiting, "put", late)
    deploy.handle(Apply("", "", "apps", EAST))

    assert east.names() == ["apps", "base"]


def test_a_dependent_that_is_not_removed_yet_keeps_its_dependency(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its manifest is deleted; its record still says that it depends on the other."""
    fleet.deploy(written("apps", "base"), written("base"))
    noted, deploy = record_acts(east), fleet.stages["deploy"]
    fleet.declare.delete([("ClusterProfile", "", "apps")])
    deploy.handle(Resolve("base"))
    fleet.declare.delete([("ClusterProfile", "", "base")])
    deploy.handle(Resolve("base"))
    deploy.handle(Apply("", "", "base", EAST))
    assert noted == []

    fleet.pump()
    assert noted == ["-apps", "-base"]


def test_a_dependent_that_comes_back_during_its_removal_is_recorded_again(
    fleet: Fleet, east: FakeKube
) -> None:
    """The worker that ends the removal deletes no record that counts."""
    fleet.deploy(written("apps", "base"), written("base"))
    fleet.declare.delete([("ClusterProfile", "", "apps")])
    deploy = fleet.stages["deploy"]

    def late() -> None:
        fleet.apply(written("apps", "base"))
        deploy.handle(Resolve("apps"))
        deploy.handle(Apply("", "", "apps", EAST))

    before_next(fleet.records.needing, "get", late)
    fleet.pump()
    assert east.names() == ["apps", "base"]
    fleet.delete("ClusterProfile", "base")

    assert east.names() == ["apps", "base"]


def test_a_death_after_a_removal_leaves_no_profile_waiting(fleet: Fleet, east: FakeKube) -> None:
    """Waiting profiles are notified before the last record of the removed one is deleted."""
    fleet.deploy(written("apps", "base"), written("base"))
    fleet.delete("ClusterProfile", "base")
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
    fleet.wait(rig.VISIBILITY)

    assert east.names() == []
    assert list(fleet.records.outcomes.of(EAST)) == []


@pytest.mark.parametrize("more", ["", "syncMode: OneTime"])
def test_a_profile_that_starts_to_wait_during_a_deployment_is_notified(
    fleet: Fleet, east: FakeKube, more: str
) -> None:
    """The worker read its profile before another one waited for it."""
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

    assert east.names() == ["apps", "base"]


def test_a_waiting_profile_is_notified_after_the_status_is_stored(
    fleet: Fleet, east: FakeKube
) -> None:
    """A profile that is notified earlier would wait again, and for ever."""
    fleet.deploy(written("apps", "base"))
    put = fleet.records.outcomes.put

    def late(outcome: DeploymentStatus, **how: Any) -> str:
        if outcome.profile == "base":
            for each in fleet.queues["apply"].receive(9, wait=timedelta(0)):
                fleet.work("apply", [each])
        return put(outcome, **how)

    fleet.records.outcomes.put = late  # type: ignore[method-assign]
    fleet.deploy(written("base"))

    assert east.names() == ["apps", "base"]


def test_who_dies_having_changed_leaves_no_trace_of_what_it_needed(fleet: Fleet) -> None:
    """Its status, which named the former dependencies, is written again by then."""
    fleet.register("east", env="production")
    fleet.deploy(written("apps", "base"), written("base"))
    put = fleet.records.outcomes.put

    def dying(outcome: DeploymentStatus, **how: Any) -> str:
        put(outcome, **how)
        fleet.records.outcomes.put = put  # type: ignore[method-assign]
        raise Killed

    fleet.records.outcomes.put = dying  # type: ignore[method-assign]
    fleet.apply(written("apps", v="2"))
    with pytest.raises(Killed):
        fleet.pump()
    fleet.wait(rig.VISIBILITY)

    assert phase(fleet, "apps") == ("Provisioned", "")
    assert list(fleet.records.needing.of(EAST, "base")) == []
