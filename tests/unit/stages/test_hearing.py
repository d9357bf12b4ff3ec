"""When a cluster was last heard: noted seldom, and kept as its forwarder said it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.state.record import Heartbeat
from tests.fakes.fleet import Fleet, service

EAST = "fleet/east"
MINUTE = timedelta(minutes=1)


def alive(**said: Any) -> dict[str, Any]:
    return {"apiVersion": "bellhop.dev/v1", "kind": "Alive", "version": "0.1.0", **said}


def heard(fleet: Fleet) -> Heartbeat:
    found = fleet.records.hearings.get(EAST)
    assert found is not None
    return found


def test_a_cluster_is_noted_as_heard_once_a_minute(fleet: Fleet) -> None:
    """However much it sends, and in a process that begins anew for each request, too."""
    fleet.register("east")
    fleet.send("east")
    first = fleet.clock.now()
    fleet.store.counts.clear()
    for _ in range(20):
        fleet.send("east", {"object": service("web")})
        fleet.reread()
        fleet.send("east")
    assert fleet.store.counts["put"] == 0
    assert heard(fleet) == Heartbeat(first)
    fleet.clock.advance(MINUTE)
    fleet.send("east")

    assert heard(fleet) == Heartbeat(first + MINUTE)


def test_what_a_forwarder_says_of_itself_is_kept(fleet: Fleet) -> None:
    """At once when it is new, and until it says something else; rings between change nothing."""
    fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    fleet.send("east")
    since = fleet.clock.now()
    refused = {"v1/Service": "cannot read Service"}
    reply = fleet.post("east", alive(owed=2, since=since.isoformat(), refused=refused))
    told = Heartbeat(since, 0.0, "0.1.0", 2, since, "cannot read Service")
    assert (reply.status, heard(fleet)) == (200, told)
    fleet.clock.advance(MINUTE)
    fleet.send("east")
    assert heard(fleet).problem == "cannot read Service"
    fleet.post("east", alive())

    assert heard(fleet) == Heartbeat(since + MINUTE, 0.0, "0.1.0")


def test_a_kind_that_nobody_asks_for_is_no_problem(fleet: Fleet) -> None:
    """The forwarder is told which of those it cannot read; of the others the reason is kept."""
    fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    refused = {"apps/v1/Deployment": "may not get Deployments", "odd": "?"}
    reply = fleet.post("east", alive(refused=refused))
    assert reply.body["unasked"] == ["apps/v1/Deployment", "odd"]
    assert heard(fleet).problem == ""

    refused["v1/Service"] = "may not get Services"
    reply = fleet.post("east", alive(refused=refused))

    assert reply.body["unasked"] == ["apps/v1/Deployment", "odd"]
    assert heard(fleet).problem == "may not get Services"


def test_what_keeps_a_forwarder_from_its_nats_is_kept(fleet: Fleet) -> None:
    """At once, however lately it was heard, and until it is subscribed."""
    fleet.register("east")
    fleet.post("east", alive())
    fleet.post("east", alive(messaging="cannot subscribe"))
    assert heard(fleet).messaging == "cannot subscribe"
    fleet.post("east", alive())

    assert heard(fleet).messaging == ""


@pytest.mark.parametrize(
    "said",
    [
        {"owed": "many"},
        {"owed": float("inf")},
        {"owed": [1]},
        {"since": "yesterday"},
        {"refused": ["v1/Service"]},
        {"refused": {"v1/Service": 7}},
    ],
    ids=str,
)
def test_what_no_forwarder_says_is_refused(fleet: Fleet, said: dict[str, Any]) -> None:
    """And nothing of it is noted."""
    fleet.register("east")
    reply = fleet.post("east", alive(**said))

    assert reply.status == 400
    assert fleet.records.hearings.get(EAST) is None


def test_strangers_are_not_heard(fleet: Fleet) -> None:
    """Who has no token of the cluster says nothing for it."""
    fleet.register("east")

    assert fleet.post("east", alive(), token="stranger").status == 401
    assert fleet.records.hearings.get(EAST) is None


def test_a_cluster_that_leaves_is_forgotten(fleet: Fleet) -> None:
    """One that is registered under its name later was never heard."""
    fleet.register("east")
    fleet.post("east", alive())
    fleet.declare.deregister(EAST)
    fleet.pump()

    assert fleet.records.hearings.get(EAST) is None
