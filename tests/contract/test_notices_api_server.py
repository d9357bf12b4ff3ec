"""Who is told by Events of what real clusters refuse: where these lie, how often, and if denied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.cli.describe import Story
from bellhop.cli.views.health_checks import VIEWS
from bellhop.cli.views.view import Query
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.diagnosis.failures import failures
from bellhop.extras.health.state import PAUSE
from bellhop.state.condition import Condition
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import Resync
from infra.lab.cluster import Cluster
from tests.contract.test_accounts_api_server import grant, limited_client
from tests.contract.test_preview_api_server import EAST, kube  # noqa: F401 - fixture
from tests.fakes import rig
from tests.fakes.chat import Chat
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import holder, join, profile
from tests.unit.fleet.test_noticing import (  # noqa: F401 - fixtures
    CHECK,
    EVENTS,
    SECRET,
    fleet,
    here,
)
from tests.waiting import eventually

# ruff: noqa: F811 - fixtures

pytest_plugins = ["tests.kube_fixtures"]

WHO = 'User "system:serviceaccount:team:bellhop"'
SECOND = timedelta(seconds=1)
MOMENT = timedelta(seconds=5)
HOUR = timedelta(hours=1)
SELDOM = EVENTS.replace("KubernetesEvent", "KubernetesEvent, policy: {minInterval: 1h}")
BOTH = CHECK.replace(
    "notifications:",
    "notifications:\n  - {name: event, type: KubernetesEvent, policy: {minInterval: 1h}}",
)
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


def bring(fleet: Fleet, port: int) -> None:
    """Bring a Service with a port once the last try is over, and look at the cluster."""
    fleet.clock.advance(MOMENT)
    spec = f"spec: {{ports: [{{port: {port}, protocol: TCP}}]}}"
    metadata = "metadata: {name: web, namespace: default}"
    fleet.apply(holder("own", join(f"apiVersion: v1\nkind: Service\n{metadata}\n{spec}\n")))
    fleet.pump()
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()


def fall_ill(fleet: Fleet) -> None:
    """Bring what the API server refuses."""
    bring(fleet, 80000)
    assert not condition(fleet).healthy


def get_well(fleet: Fleet) -> None:
    """Bring what it takes instead."""
    bring(fleet, 80)
    assert condition(fleet).healthy


def flap(fleet: Fleet, times: int) -> None:
    """Have a cluster that is not well be well, and not well again."""
    for _ in range(times):
        get_well(fleet)
        fall_ill(fleet)


def wait(fleet: Fleet, pause: timedelta, *, after: datetime | None = None) -> None:
    """Let time go by, from now or since somebody was told."""
    now = fleet.clock.now()
    fleet.clock.advance((after or now) + pause - now)
    fleet.pump()


def events(kube: KubeClient) -> list[dict[str, Any]]:
    """Return what is told in a cluster as its API server has it, the oldest first."""
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

    there, elsewhere = (home, east) if managed else (east, home)
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
    assert events(elsewhere) == []


@pytest.mark.parametrize(
    ("check", "interval"),
    [pytest.param(EVENTS, PAUSE, id="a minute"), pytest.param(SELDOM, HOUR, id="as its policy")],
)
def test_a_cluster_that_flaps_is_told_of_as_seldom_as_is_said(
    fleet: Fleet, east: KubeClient, check: str, interval: timedelta
) -> None:
    """No Event is written or changed before; then one says how the cluster is by then.

    It takes seconds: a cluster fails and recovers several times on a real API server.
    """
    fleet.apply(check)
    fall_ill(fleet)
    told_at = fleet.clock.now()
    [first] = events(east)
    flap(fleet, 3)
    get_well(fleet)
    assert events(east) == [first]
    wait(fleet, interval - SECOND, after=told_at)
    assert events(east) == [first]

    wait(fleet, SECOND)
    kept, second = events(east)
    assert kept == first
    assert (second["type"], second["count"]) == ("Normal", 1)
    assert second["message"].startswith(
        "Cluster fleet/east is healthy again (production)\nall 1 profiles are deployed\n"
    )

    told_at = fleet.clock.now()
    fall_ill(fleet)
    bring(fleet, 90000)
    wait(fleet, interval - SECOND, after=told_at)
    assert events(east) == [first, second]
    wait(fleet, SECOND)
    *_, third = events(east)
    assert third["type"] == "Warning"
    assert "Invalid value: 90000" in third["message"]
    assert len(events(east)) == 3


def test_what_changed_back_meanwhile_is_not_told(fleet: Fleet, east: KubeClient) -> None:
    """A cluster that is again as it was told of has no second Event, however long one waits."""
    fleet.apply(EVENTS)
    fall_ill(fleet)
    before = events(east)
    flap(fleet, 2)
    for _ in range(3):
        wait(fleet, HOUR)

    assert len(before) == 1
    assert events(east) == before


def test_each_place_hears_as_seldom_as_it_asks(fleet: Fleet, east: KubeClient, here: Chat) -> None:
    """A chat hears after a minute of what an Event tells an hour later, where it is still so."""
    fleet.apply(BOTH, SECRET)
    fall_ill(fleet)
    told_at = fleet.clock.now()
    get_well(fleet)
    assert (len(events(east)), len(here.texts)) == (1, 1)

    wait(fleet, PAUSE, after=told_at)
    assert (len(events(east)), len(here.texts)) == (1, 2)
    assert here.texts[-1].startswith("Cluster fleet/east is healthy again (production)\n")
    wait(fleet, HOUR, after=told_at)
    assert [each["type"] for each in events(east)] == ["Warning", "Normal"]
    assert len(here.texts) == 2


def test_an_event_that_is_told_twice_is_one(fleet: Fleet, east: KubeClient) -> None:
    """Who died before it was noted tells it again, and the API server sees no change."""
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


def untold(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str]:
    """Return why an Event was not sent: as it is on record, and as people see it twice."""
    installation = fleet.installation()
    capsys.readouterr()
    VIEWS["clusterhealthcheck"].describe(installation, Query(), Story())
    told = [each.sentence for each in failures(installation) if each.what == "notice"]
    return condition(fleet).notices[0].error, capsys.readouterr().out, "\n".join(told)


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
    """Nobody else gets it; it is sent once the right is there, and nothing more is told of it."""
    limited = limited_client(home, destination_cluster, MANAGEMENT)
    grant(home, "bellhop", right, resources=("events",))
    manage(fleet, limited)
    fleet.apply(EVENTS.replace("production", name, 1))
    fall_ill(fleet)
    until(fleet, lambda: missing in condition(fleet).notices[0].error)
    for said in untold(fleet, capsys):
        assert f"cannot apply Event 'default/{name}." in said
        assert "on cluster 'mgmt/mgmt'" in said
        assert missing in said
    assert events(home) == events(east) == []

    grant(home, "bellhop", "create", "patch", resources=("events",))
    until(fleet, lambda: condition(fleet).notices[0].told is False)
    [event] = events(home)
    assert (event["type"], event["count"]) == ("Warning", 1)
    error, described, failed = untold(fleet, capsys)
    assert (error, failed) == ("", "")
    assert "cannot apply Event" not in described
    assert events(east) == []
    limited.close()


def test_a_cluster_that_does_not_answer_gets_its_event_later(
    fleet: Fleet, east: KubeClient, home: KubeClient, destination_cluster: Cluster
) -> None:
    """It says how the cluster is by then; nobody else gets it meanwhile.

    It takes seconds: an API server boots.
    """
    manage(fleet, home)
    fleet.apply(EVENTS)
    destination_cluster.stop()
    fall_ill(fleet)
    assert "on cluster 'mgmt/mgmt'" in condition(fleet).notices[0].error
    bring(fleet, 90000)
    destination_cluster.start()
    until(fleet, lambda: condition(fleet).notices[0].told is False)

    [event] = events(home)
    assert "Invalid value: 90000" in event["message"]
    assert events(east) == []
