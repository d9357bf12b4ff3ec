"""New credentials count from the next message on, whatever it is about."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import DeniedError
from bellhop.messages import Confirm
from bellhop.model.gvk import GVK, ObjectKey
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kube import FakeKube

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
WEB = ObjectKey(SERVICE, "default", "web")


@pytest.fixture
def moved(fleet: Fleet) -> tuple[FakeKube, FakeKube]:
    """A cluster that was registered anew at another place; what was called before is cut off."""
    old = fleet.register("east", credentials="1", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    new = fleet.access.clusters["fleet/east"] = FakeKube("fleet/east")
    old.fail_with(DeniedError("this is the cluster that was"))
    fleet.register("east", credentials="2", env="production")
    return old, new


def test_the_sweep_that_registration_asks_for_meets_the_new_cluster(
    fleet: Fleet, moved: tuple[FakeKube, FakeKube]
) -> None:
    """It is looked at and wired where the new credentials lead; the old one hears nothing."""
    old, new = moved
    old.calls.clear()
    new.put(service("web"))
    fleet.pump()

    assert old.calls == []
    assert [each["metadata"]["name"] for each in new.objects(POLICY)] == ["front-web"]
    assert fleet.records.health.get("fleet/east").value.state == "Healthy"


def test_a_hint_is_confirmed_in_the_new_cluster(
    fleet: Fleet, moved: tuple[FakeKube, FakeKube]
) -> None:
    """What the old one has, or has not, says nothing."""
    old, new = moved
    fleet.pump()
    old.calls.clear()
    there = new.put(service("web"))
    uid = there["metadata"]["uid"]
    fleet.stages["sweep"].handle(Confirm("fleet/east", str(WEB), uid=uid, before=0))
    fleet.pump()

    assert old.calls == []
    assert [each["metadata"]["name"] for each in new.objects(POLICY)] == ["front-web"]


def test_add_ons_go_to_the_new_cluster(fleet: Fleet) -> None:
    """Also where deploy hears of the change before any sweep has met it."""
    old = fleet.register("east", credentials="1", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    old.calls.clear()
    new = fleet.access.clusters["fleet/east"] = FakeKube("fleet/east")
    fleet.records.forget_holdings("fleet/east")
    fleet.register("east", credentials="2", env="production")

    while messages_due := fleet.queues["apply"].receive(10, wait=timedelta(0)):
        fleet.work("apply", messages_due)

    assert old.calls == []
    assert [each["metadata"]["name"] for each in new.objects(POLICY)] == ["front-web"]


def test_a_hint_of_a_cluster_that_is_gone_is_dropped(fleet: Fleet) -> None:
    """Nobody asks a cluster that is not registered any more."""
    kube = fleet.register("east", env="production")
    fleet.pump()
    fleet.declare.deregister("fleet/east")
    fleet.pump()
    kube.calls.clear()
    fleet.stages["sweep"].handle(Confirm("fleet/east", str(WEB), uid="u", before=0))

    assert kube.calls == []
