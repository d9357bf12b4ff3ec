"""Heartbeats of clusters: written seldom, with the forwarder's own report."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.state.cluster import Heartbeat
from tests.fakes.fleet import EAST, Fleet, service

MINUTE = timedelta(minutes=1)


def alive(**said: Any) -> dict[str, Any]:
    return {"apiVersion": "bellhop.dev/v1", "kind": "Alive", "version": "0.1.0", **said}


def heartbeat(fleet: Fleet) -> Heartbeat:
    found = fleet.records.hearings.get(EAST)
    assert found is not None
    return found


def test_a_heartbeat_is_written_once_a_minute(fleet: Fleet) -> None:
    """This is so for any number of events, and in a new process for each request."""
    fleet.register("east")
    fleet.send("east")
    first = fleet.clock.now()
    fleet.store.counts.clear()
    for _ in range(20):
        fleet.send("east", {"object": service("web")})
        fleet.reread()
        fleet.send("east")
    assert fleet.store.counts["put"] == 0
    assert heartbeat(fleet) == Heartbeat(first)
    fleet.clock.advance(MINUTE)
    fleet.send("east")

    assert heartbeat(fleet) == Heartbeat(first + MINUTE)


def test_the_report_of_a_forwarder_is_stored(watching: Fleet) -> None:
    """At once if it is new, and until it changes; events in between change nothing."""
    watching.send("east")
    since = watching.clock.now()
    refused = {"v1/Service": "cannot read Service"}
    reply = watching.post("east", alive(owed=2, since=since.isoformat(), refused=refused))
    expected = Heartbeat(since, 0.0, "0.1.0", 2, since, "cannot read Service")
    assert (reply.status, heartbeat(watching)) == (200, expected)
    watching.clock.advance(MINUTE)
    watching.send("east")
    assert heartbeat(watching).problem == "cannot read Service"
    watching.post("east", alive())

    assert heartbeat(watching) == Heartbeat(since + MINUTE, 0.0, "0.1.0")


def test_an_unused_kind_is_no_problem(watching: Fleet) -> None:
    """The forwarder learns which kinds it need not read; of the others the reason is stored."""
    refused = {"apps/v1/Deployment": "may not get Deployments", "odd": "?"}
    reply = watching.post("east", alive(refused=refused))
    assert reply.body["unasked"] == ["apps/v1/Deployment", "odd"]
    assert heartbeat(watching).problem == ""

    refused["v1/Service"] = "may not get Services"
    reply = watching.post("east", alive(refused=refused))

    assert reply.body["unasked"] == ["apps/v1/Deployment", "odd"]
    assert heartbeat(watching).problem == "may not get Services"


def test_the_error_of_a_nats_subscription_is_stored(fleet: Fleet) -> None:
    """At once, however recent the last heartbeat, and until it is subscribed."""
    fleet.register("east")
    fleet.post("east", alive())
    fleet.post("east", alive(messaging="cannot subscribe"))
    assert heartbeat(fleet).messaging == "cannot subscribe"
    fleet.post("east", alive())

    assert heartbeat(fleet).messaging == ""


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
def test_an_invalid_report_is_refused(fleet: Fleet, said: dict[str, Any]) -> None:
    """And nothing of it is noted."""
    fleet.register("east")
    reply = fleet.post("east", alive(**said))

    assert reply.status == 400
    assert fleet.records.hearings.get(EAST) is None


def test_an_unauthenticated_request_is_no_heartbeat(fleet: Fleet) -> None:
    """A request without a token of the cluster changes nothing of it."""
    fleet.register("east")

    assert fleet.post("east", alive(), token="stranger").status == 401
    assert fleet.records.hearings.get(EAST) is None


def test_a_cluster_that_leaves_is_forgotten(fleet: Fleet) -> None:
    """A cluster registered under its name later has no heartbeat yet."""
    fleet.register("east")
    fleet.post("east", alive())
    fleet.declare.deregister(EAST)
    fleet.pump()

    assert fleet.records.hearings.get(EAST) is None
