"""Processes killed at any stage, clusters that are down, events that are missed."""

from __future__ import annotations

import pytest

from bellhop.core.gvk import ObjectKey
from tests.flow.conftest import Flow
from tests.scenarios import POLICY, SERVICE, TWIN, WEB, balanced, ports, service
from tests.waiting import eventually


@pytest.mark.parametrize(
    "moment", [0.008, *(pytest.param(n, marks=pytest.mark.rest) for n in (0.0, 0.03))]
)
def test_ends_the_same_when_bellhop_is_killed(flow: Flow, moment: float) -> None:
    """Kill -9 at any moment of an event, then a restart: the same end, and nothing twice."""
    flow.apply("service-discovery")
    flow.source.create(balanced("web", 60000))
    flow.source.give_address(WEB, "34.172.32.172")
    eventually("something rings or not", lambda: True)
    _wait(moment)
    flow.stand.kill("serve")
    flow.stand.serve()

    eventually("the twin is there", lambda: ports(flow, TWIN) == [60000])
    eventually("one profile is there", lambda: _profiles(flow) == 1)

    flow.stand.kill("serve")
    flow.source.delete(WEB)
    flow.stand.serve()
    eventually("the twin is gone", lambda: flow.destination.get(TWIN) is None)
    eventually("nothing is kept", lambda: _profiles(flow) == 0)


def test_loses_no_event_when_the_forwarder_is_killed(flow: Flow) -> None:
    """What the forwarder had answered it sends after its restart."""
    flow.apply("network-policy")
    flow.stand.kill("serve")
    flow.source.create(service("my-service", sveltos="fv"))
    flow.stand.kill("forwarder-source")
    flow.stand.forward("source")
    flow.stand.serve()

    eventually("the policy is there", lambda: flow.source.names(POLICY) == ["front-my-service"])


def test_a_resync_corrects_what_the_push_missed(flow: Flow) -> None:
    """With the forwarder stopped, a resync finds new and deleted objects, and counts them."""
    flow.apply("network-policy")
    flow.source.create(service("old-service", sveltos="fv"))
    eventually("the first is there", lambda: flow.source.names(POLICY) == ["front-old-service"])
    assert flow.stand.stop("forwarder-source") == 0
    flow.source.create(service("new-service", sveltos="fv"))
    flow.source.delete(ObjectKey(SERVICE, "default", "old-service"))

    flow.stand.do("resync", "fleet/source")

    eventually("it is healed", lambda: flow.source.names(POLICY) == ["front-new-service"])
    # A resync counts at its end, after the add-ons of its objects were begun.
    health = flow.stand.records().health
    eventually("both are counted", lambda: health.get("fleet/source").value.missed >= 2)


@pytest.mark.rest
def test_serves_one_destination_while_another_is_down(flow: Flow) -> None:
    """The healthy destination is served at once, the other one when it is back."""
    flow.stand.do("label", "cluster", "fleet/source", "dep=eng")
    flow.apply("service-discovery")
    flow.destination_cluster.stop()
    flow.source.create(balanced("web", 60000))
    flow.source.give_address(WEB, "34.172.32.172")
    eventually("the healthy one has it", lambda: flow.source.get(TWIN) is not None)
    eventually("the failure is shown", lambda: "fleet/destination" in flow.failures())

    flow.destination_cluster.start()

    eventually("the other one has it", lambda: ports(flow, TWIN) == [60000])
    eventually("no failure is left", lambda: "Unreachable" not in flow.failures())


def _profiles(flow: Flow) -> int:
    return len(list(flow.stand.records().profiles.heads("service-policy")))


def _wait(seconds: float) -> None:
    import time  # noqa: PLC0415 - the moment of a kill

    time.sleep(seconds)
