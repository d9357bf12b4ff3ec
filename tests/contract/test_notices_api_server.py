"""Events report what real clusters refuse: in which namespace, how often, and if denied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.cli.printer import Description
from bellhop.cli.views.health_checks import VIEWS
from bellhop.cli.views.view import Query
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.diagnosis.failures import list_failures
from bellhop.extras.health.records import Condition
from bellhop.extras.health.state import PAUSE
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.messages import Resync
from infra.lab.cluster import Cluster
from tests.contract.real_cluster import EAST
from tests.contract.test_accounts_api_server import grant, limited_client
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import holder, join, profile
from tests.unit.extras.test_notifications import (  # noqa: F401 - fixtures
    CHECK,
    EVENTS,
    fleet,
    here,
)
from tests.waiting import eventually

# ruff: noqa: F811 - fixtures

WHO = 'User "system:serviceaccount:team:bellhop"'
MOMENT = timedelta(seconds=5)
HOUR = timedelta(hours=1)
_PATIENCE_SECONDS = 30.0


@pytest.fixture
def home(destination_cluster: Cluster) -> Iterator[KubeClient]:
    """The administrator of the cluster that manages others."""
    kubeconfig = sanitise(destination_cluster.kubeconfig(), reach=LOCAL)
    client = KubeClient(MANAGEMENT, kubeconfig, reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def east(fleet: Fleet, kube: KubeClient) -> KubeClient:
    """A cluster that is registered, and that a profile goes to."""
    fleet.access.clusters[EAST] = kube  # type: ignore[assignment]
    fleet.register("east", env="production")
    fleet.apply(profile())
    return kube


def manage(fleet: Fleet, client: KubeClient) -> None:
    """Register the cluster that manages others, with the credentials of a client."""
    fleet.access.clusters[MANAGEMENT] = client  # type: ignore[assignment]
    rig.register_host(fleet)


def condition(fleet: Fleet) -> Condition:
    """Return how the cluster is by the one check."""
    [kept] = fleet.records.conditions.of(EAST).values()
    return kept.value


def deploy_service(fleet: Fleet, port: int) -> None:
    """Deploy a Service with a port once the last try is over, and look at the cluster."""
    fleet.clock.advance(MOMENT)
    spec = f"spec: {{ports: [{{port: {port}, protocol: TCP}}]}}"
    metadata = "metadata: {name: web, namespace: default}"
    fleet.apply(holder("own", join(f"apiVersion: v1\nkind: Service\n{metadata}\n{spec}\n")))
    fleet.pump()
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()


def fall_ill(fleet: Fleet) -> None:
    """Deploy an object that the API server refuses."""
    deploy_service(fleet, 80000)
    assert not condition(fleet).healthy


def wait(fleet: Fleet, pause: timedelta) -> None:
    fleet.clock.advance(pause)
    fleet.pump()


def events(kube: KubeClient) -> list[dict[str, Any]]:
    """Return the Events of a cluster as its API server has them, the oldest first."""
    query = {"fieldSelector": "reason=ClusterHealthCheck"}
    request = Request("GET", "/api/v1/events", query)
    items: list[dict[str, Any]] = kube._transport.send(request, Call("it", "list"))["items"]
    return sorted(items, key=lambda each: int(each["metadata"]["resourceVersion"]))


@pytest.mark.parametrize("managed", [True, False], ids=["of mgmt/mgmt", "of the cluster itself"])
def test_an_event_is_stored_in_the_cluster_that_people_look_at(
    fleet: Fleet, east: KubeClient, home: KubeClient, *, managed: bool
) -> None:
    """A Warning about the check, in `default`; the other cluster has none."""
    if managed:
        manage(fleet, home)
    fleet.apply(EVENTS)
    fall_ill(fleet)

    there, other = (home, east) if managed else (east, home)
    [event] = events(there)
    assert event["metadata"]["namespace"] == "default"
    assert event["metadata"]["name"].startswith("production.")
    assert event["involvedObject"] == {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "ClusterHealthCheck",
        "name": "production",
    }
    assert (event["type"], event["reason"]) == ("Warning", "ClusterHealthCheck")
    assert (event["count"], event["source"]) == (1, {"component": "bellhop"})
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T12:00:05Z"
    first, why, since = event["message"].splitlines()
    assert first == "Cluster fleet/east is unhealthy (production)"
    assert why.startswith("ClusterProfile/own: cannot apply Service 'default/web' on cluster ")
    assert "Invalid value: 80000" in why
    assert since == "Since 2026-01-01 12:00 UTC."
    assert events(other) == []


def test_an_event_that_is_sent_twice_is_one(fleet: Fleet, east: KubeClient) -> None:
    """A worker that died before it was noted sends it again, and the API server sees no change."""
    fleet.apply(EVENTS)
    fall_ill(fleet)
    before = events(east)
    kept = fleet.records.conditions.of(EAST)["production"]
    [notice] = kept.value.notices
    unsure = replace(kept.value, notices=(replace(notice, told=True, until=None),))
    fleet.records.conditions.put(EAST, "production", unsure, expect=kept.token)
    wait(fleet, PAUSE)
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    assert condition(fleet).notices[0].told is False
    assert len(before) == 1
    assert events(east) == before


def undelivered(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str]:
    """Return why an Event was not sent: as it is on record, and as people see it twice."""
    installation = fleet.installation()
    capsys.readouterr()
    VIEWS["clusterhealthcheck"].describe(installation, Query(), Description())
    messages = [each.message for each in list_failures(installation) if each.type == "notice"]
    return condition(fleet).notices[0].error, capsys.readouterr().out, "\n".join(messages)


def until(fleet: Fleet, done: Callable[[], bool]) -> None:
    """Let the pauses go by until something is so; what RBAC says counts a moment later."""

    def step() -> bool:
        if not done():
            wait(fleet, HOUR)
        return done()

    eventually(lambda: condition(fleet).notices, step, patience=_PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("right", "missing"),
    [
        ("get", f'{WHO} cannot patch resource "events" in API group ""'),
        ("patch", "create"),
    ],
    ids=["may read", "may change"],
)
@pytest.mark.parametrize("name", ["production", "of-" * 40 + "all"], ids=["short", "long"])
def test_an_event_that_is_denied_says_what_right_is_missing(
    fleet: Fleet,
    east: KubeClient,
    home: KubeClient,
    destination_cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    *,
    right: str,
    missing: str,
    name: str,
) -> None:
    """Nobody else gets it; it is sent once the right is there, and nothing more is reported."""
    limited = limited_client(home, destination_cluster, MANAGEMENT)
    grant(home, "bellhop", right, resources=("events",))
    manage(fleet, limited)
    fleet.apply(EVENTS.replace("production", name, 1))
    fall_ill(fleet)
    until(fleet, lambda: missing in condition(fleet).notices[0].error)
    for said in undelivered(fleet, capsys):
        assert f"cannot apply Event 'default/{name}." in said
        assert "on cluster 'mgmt/mgmt'" in said
        assert missing in said
    assert events(home) == events(east) == []

    grant(home, "bellhop", "create", "patch", resources=("events",))
    until(fleet, lambda: condition(fleet).notices[0].told is False)
    [event] = events(home)
    assert (event["type"], event["count"]) == ("Warning", 1)
    error, described, failed = undelivered(fleet, capsys)
    assert (error, failed) == ("", "")
    assert "cannot apply Event" not in described
    assert events(east) == []
    limited.close()


def test_a_cluster_that_does_not_answer_gets_its_event_later(
    fleet: Fleet, east: KubeClient, home: KubeClient, destination_cluster: Cluster
) -> None:
    """It says how the cluster is by then; nobody else gets it meanwhile."""
    manage(fleet, home)
    fleet.apply(EVENTS)
    destination_cluster.stop()
    fall_ill(fleet)
    assert "on cluster 'mgmt/mgmt'" in condition(fleet).notices[0].error
    deploy_service(fleet, 90000)
    destination_cluster.start()
    until(fleet, lambda: condition(fleet).notices[0].told is False)

    [event] = events(home)
    assert "Invalid value: 90000" in event["message"]
    assert events(east) == []
