"""New credentials count from the next message on, whatever it is about."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.doctor import check_clusters
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import DeniedError, UnauthorizedError
from bellhop.state.messages import ReadBack
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
WEB = ObjectKey(SERVICE, "default", "web")


@pytest.fixture
def moved(fleet: Fleet) -> tuple[FakeKube, FakeKube]:
    """A cluster that was registered again at another address; the old address is cut off."""
    old = fleet.register("east", credentials="1", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    new = fleet.access.clusters["fleet/east"] = FakeKube("fleet/east")
    old.fail_with(DeniedError("this is the cluster that was"))
    fleet.register("east", credentials="2", env="production")
    return old, new


def test_the_resync_after_a_registration_lists_the_new_cluster(
    fleet: Fleet, moved: tuple[FakeKube, FakeKube]
) -> None:
    """The cluster of the new credentials is listed and wired; the old one is not called."""
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
    """The objects of the old one do not count."""
    old, new = moved
    fleet.pump()
    old.calls.clear()
    there = new.put(service("web"))
    uid = there["metadata"]["uid"]
    fleet.stages["sweep"].handle(ReadBack("fleet/east", str(WEB), uid=uid, before=0))
    fleet.pump()

    assert old.calls == []
    assert [each["metadata"]["name"] for each in new.objects(POLICY)] == ["front-web"]


def test_add_ons_go_to_the_new_cluster(fleet: Fleet) -> None:
    """Also where deploy reads of the change before any resync has met it."""
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


def test_a_hint_of_a_deregistered_cluster_is_dropped(fleet: Fleet) -> None:
    """Nobody asks a cluster that is not registered any more."""
    kube = fleet.register("east", env="production")
    fleet.pump()
    fleet.declare.deregister("fleet/east")
    fleet.pump()
    kube.calls.clear()
    fleet.stages["sweep"].handle(ReadBack("fleet/east", str(WEB), uid="u", before=0))

    assert kube.calls == []


def test_credentials_that_are_refused_are_a_state_of_their_own(fleet: Fleet) -> None:
    """From the first call that is refused; what waited goes on once others are accepted."""
    kube = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    swept_at = fleet.records.health.get("fleet/east").value.swept_at
    kube.fail_with(UnauthorizedError("the credentials are not accepted"))

    fleet.clock.advance(timedelta(seconds=10))
    fleet.write("east", service("web"))
    fleet.pump()

    health = cluster_status.read_health(fleet.installation(), "fleet/east")
    assert (health.state, health.message) == ("Unauthorized", "the credentials are not accepted")
    assert health.swept_at == swept_at

    fleet.wait(timedelta(minutes=6), 3)
    health = cluster_status.read_health(fleet.installation(), "fleet/east")
    assert (health.state, health.failures, health.swept_at) == ("Unauthorized", 3, swept_at)

    kube.fail_with(None)
    fleet.wait(timedelta(minutes=6))

    assert cluster_status.read_health(fleet.installation(), "fleet/east").state == "Healthy"
    assert [each["metadata"]["name"] for each in kube.objects(POLICY)] == ["front-web"]


def test_the_end_of_credentials_is_reported_a_week_before(fleet: Fleet) -> None:
    """By `status` and `show failures`, with the command that gives the cluster others."""
    kube = fleet.register("east", env="production")
    ends = kube.ends_at = fleet.clock.now() + timedelta(days=8)
    fleet.pump()
    assert not [each for each in list_failures(fleet.installation()) if each.type == "credentials"]

    fleet.clock.advance(timedelta(days=2))
    [soon] = [each for each in list_failures(fleet.installation()) if each.type == "credentials"]
    fleet.clock.advance(timedelta(days=7))
    [late] = [each for each in list_failures(fleet.installation()) if each.type == "credentials"]

    assert f"the stored credentials end at {ends:%Y-%m-%d %H:%M} UTC" in soon.message
    assert "the stored credentials ended at" in late.message
    assert "`bellhop register cluster fleet/east --kubeconfig FILE`" in soon.message


def test_refused_credentials_are_no_silence(fleet: Fleet) -> None:
    """Also without a heartbeat of the forwarder: without access nobody can look why."""
    kube = fleet.register("east", env="production")
    kept = value_of(fleet.records.clusters.get("fleet/east"))
    forwarder = {"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/ring/x"}
    fleet.declare.register(replace(kept, forwarder=forwarder))
    fleet.apply_example("network-policy")
    fleet.pump()
    fleet.wait(timedelta(minutes=6))
    unheard = cluster_status.read_health(fleet.installation(), "fleet/east").state

    kube.fail_with(UnauthorizedError("the credentials are not accepted"))
    fleet.wait(timedelta(minutes=6))

    refused = cluster_status.read_health(fleet.installation(), "fleet/east").state
    assert (unheard, refused) == ("Silent", "Unauthorized")


def test_doctor_checks_only_the_client_of_kubernetes(fleet: Fleet) -> None:
    """A cluster that another client calls, as in tests, is unknown and no internal error."""
    fleet.register("east", env="production")
    [(key, checks)] = check_clusters(fleet.installation(), ["fleet/east"])

    assert key == "fleet/east"
    assert ("API server", "unknown") in [(each.type, each.status) for each in checks]
