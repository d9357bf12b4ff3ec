"""Corrections by resyncs and later changes, such as of sources while a cluster does not answer."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.core.sveltos_annotations import OWNER
from bellhop.errors import DeniedError, MissingError, UnreachableError
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import PurgeCluster
from tests.fakes.fleet import EAST, SERVICE, Fleet, service
from tests.fakes.hooks import failing
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

ACCOUNT = GVK("", "v1", "ServiceAccount")
DOWN = UnreachableError("cluster 'fleet/east' does not answer")


def made(value: str = "1", annotations: str = INSTANTIATE) -> str:
    """Return the manifest of what each Service gets."""
    return holder("made", config(FOR_EACH, f"v: '{value}'"), annotations=annotations)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which each Service gets a ConfigMap, and one that has it."""
    kube = fleet.register("east", env="production")
    fleet.deploy(source("Service"), trigger(), made())
    fleet.write("east", service("web"))
    fleet.pump()
    assert kube.names() == ["for-web"]
    return kube


def resync(fleet: Fleet) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.resync()


def give_up(fleet: Fleet) -> None:
    """Let time pass until only the probe retries."""
    for _ in range(15):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=2))


def test_a_source_changed_during_an_outage_counts_after_it(fleet: Fleet, east: FakeKube) -> None:
    """The next scheduled resync evaluates everything, and no dead letter has to be replayed."""
    east.fail_with(DOWN)
    fleet.apply(source("ServiceAccount"))
    give_up(fleet)
    assert fleet.queues["sweep"].list() == []
    east.fail_with(None)

    resync(fleet)

    assert east.names() == []
    assert list(fleet.records.matches.of(EAST)) == []
    assert list(fleet.records.observations.heads(EAST)) == []


def test_a_deleted_source_withdraws_during_an_outage(fleet: Fleet, east: FakeKube) -> None:
    """Add-ons of other clusters do not wait for the cluster of the event."""
    west = fleet.register("west", dep="eng")
    fleet.deploy(trigger(more="destinationClusterSelector: {matchLabels: {dep: eng}}"))
    assert west.names() == ["for-web"]
    east.fail_with(DOWN)

    fleet.delete("EventSource", "watched")

    assert west.names() == []


@pytest.mark.usefixtures("east")
def test_matches_of_a_kind_that_a_source_no_longer_names_end(fleet: Fleet) -> None:
    """It makes no difference that another source still has the kind observed."""
    fleet.deploy(source("Service", name="other"), trigger("second", origin="other", ref="made"))

    fleet.deploy(source("ServiceAccount"))

    assert [each.source for each in fleet.records.matches.of(EAST)] == ["other"]
    assert {each.trigger for each in fleet.records.profiles.of("made")} == set()


def test_a_denied_kind_does_not_prevent_a_resync_of_the_others(
    fleet: Fleet, east: FakeKube
) -> None:
    """The cluster is Healthy and its message names what is refused; a right given later heals."""
    whole = east.page

    def narrow(gvk: GVK, **more: str) -> object:
        if gvk == ACCOUNT:
            raise DeniedError("cluster 'fleet/east' refuses: no right to list serviceaccounts")
        return whole(gvk, **more)

    east.page = narrow  # type: ignore[assignment, method-assign]
    fleet.deploy(source("ServiceAccount", "Service"))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    east.put(account)
    east.put(service("db"))
    resync(fleet)
    health = fleet.records.health.get(EAST).value
    assert (health.state, "serviceaccounts" in health.message) == ("Healthy", True)
    assert east.names() == ["for-db", "for-web"]

    east.page = whole  # type: ignore[method-assign]
    resync(fleet)

    assert east.names() == ["for-db", "for-robot", "for-web"]
    assert fleet.records.health.get(EAST).value.message == ""


def test_a_failed_subscription_is_shown(fleet: Fleet, east: FakeKube) -> None:
    """The cluster's health names the missing right, and resyncs continue."""
    cluster = value_of(fleet.records.clusters.get(EAST))
    assert cluster
    fleet.declare.register(
        replace(cluster, forwarder={"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/x"})
    )
    fleet.pump()

    health = fleet.records.health.get(EAST).value
    assert health.state == "Healthy"
    assert "ValidatingWebhookConfiguration" in health.message
    del east


def test_a_cluster_created_again_is_observed_as_it_is(fleet: Fleet, east: FakeKube) -> None:
    """Its resource versions begin again, lower than what is kept of the cluster before it."""
    fleet.write("east", service("old"))
    fleet.pump()
    created = fleet.access.clusters[EAST] = FakeKube(EAST)
    low = iter(range(1, 1000))
    created._versions = low  # type: ignore[assignment]
    created.put(service("web", spec={"ports": [{"port": 1}]}))
    created.put(service("new"))

    resync(fleet)
    resync(fleet)

    kept = value_of(fleet.records.observations.get(EAST, ObjectKey(SERVICE, "default", "web")))
    assert kept
    assert kept.manifest
    assert kept.manifest["spec"] == {"ports": [{"port": 1}]}
    assert [str(each.key.name) for each in fleet.records.matches.of(EAST)] == ["new", "web"]
    assert created.names() == ["for-new", "for-web"]
    del east


def test_a_cluster_created_again_has_no_object_of_ours(fleet: Fleet, east: FakeKube) -> None:
    """An object of a known name was not applied by us there, whatever an inventory says.

    Its marks show a profile, as after a restore; without any it belongs to others.
    """
    created = fleet.access.clusters[EAST] = FakeKube(EAST)
    for name, marks in (("web", {OWNER: "before"}), ("theirs", {})):
        created.put(service(name))
        head = {"name": f"for-{name}", "namespace": "default", "annotations": marks}
        created.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": {"v": "?"}})

    resync(fleet)

    found = {each["metadata"]["name"]: each["data"]["v"] for each in created.objects(CONFIG)}
    assert found == {"for-web": "1", "for-theirs": "?"}
    del east


def test_a_cluster_that_is_there_is_not_tidied_up(fleet: Fleet, east: FakeKube) -> None:
    """It may have been registered again since its end was to be tidied up."""
    fleet.publisher.publish([PurgeCluster(EAST)])
    fleet.pump()

    assert len(list(fleet.records.matches.of(EAST))) == 1
    assert len(list(fleet.records.inventories.of(EAST))) == 1
    del east


def test_objects_buried_before_a_death_are_published(fleet: Fleet, east: FakeKube) -> None:
    """The next worker publishes the tombstones among its suspects."""
    east.drop(SERVICE, "default", "web")
    with failing(fleet.queues["review"], "publish", SystemExit(9)), pytest.raises(SystemExit):
        resync(fleet)
    fleet.queues["sweep"].release()
    fleet.pump()

    assert east.names() == []


def test_a_cluster_that_is_registered_again_gets_everything(fleet: Fleet) -> None:
    """A destination that was deregistered gets all add-ons again, though no profile has changed."""
    fleet.register("east", env="production")
    west = fleet.register("west", dep="eng")
    fleet.deploy(
        source("Service"),
        trigger(more="destinationClusterSelector: {matchLabels: {dep: eng}}"),
        made(),
    )
    fleet.write("east", service("web"))
    fleet.pump()
    west.drop(CONFIG, "default", "for-web")

    fleet.declare.deregister("fleet/west")
    fleet.register("west", dep="eng")
    fleet.pump()

    assert west.names() == ["for-web"]


def test_a_source_name_that_cannot_be_rendered_harms_only_its_trigger(
    fleet: Fleet, east: FakeKube
) -> None:
    """Other events and resyncs continue, and the trigger's add-ons stay until it is corrected."""
    fleet.deploy(
        trigger(origin="{{ .Cluster.metadata.labels.nothing }}"),
        trigger("second", ref="made"),
    )
    fleet.write("east", service("db"))
    fleet.pump()
    resync(fleet)
    assert fleet.records.health.get(EAST).value.state == "Healthy"
    objects = {each.object for each in fleet.records.profiles.of("second")}
    assert objects == {"/v1/Service/default/db", "/v1/Service/default/web"}
    assert [each.object for each in fleet.records.profiles.of("made")] == [
        "/v1/Service/default/web"
    ]
    failed = [entry for entry in fleet.ledger() if entry.what == "failed"]
    assert [entry for entry in failed if "eventSourceName" in entry.detail]

    removals = [call for call in east.calls if call.verb == "remove"]
    fleet.deploy(trigger())

    assert [call for call in east.calls if call.verb == "remove"] == removals
    assert len(list(fleet.records.profiles.of("made"))) == 2


def test_matches_of_a_source_without_trigger_end(fleet: Fleet, east: FakeKube) -> None:
    """They end at once, and wait for no scheduled resync."""
    fleet.delete("EventTrigger", "made")

    assert list(fleet.records.matches.of(EAST)) == []
    assert east.names() == []


def test_a_cluster_is_resynced_on_a_schedule_from_its_registration_on(fleet: Fleet) -> None:
    """It does not wait for the house to find that it has no timer."""
    fleet.pump()
    fleet.register("west")

    assert fleet.records.timers.get(sweep_timer("fleet/west"))


def test_no_match_ends_while_the_source_of_a_trigger_cannot_be_rendered(
    fleet: Fleet, east: FakeKube
) -> None:
    """A source that no other trigger names stays in force."""
    fleet.apply(trigger(origin="{{ .Cluster.metadata.labels.nothing }}"))
    resync(fleet)

    assert [str(each.key.name) for each in fleet.records.matches.of(EAST)] == ["web"]
    assert east.names() == ["for-web"]


def test_a_label_that_is_read_at_deploy_time_is_followed(fleet: Fleet) -> None:
    """Changed labels of a destination are rendered again, though the profile is the same."""
    east = fleet.register("east", env="production", tier="gold")
    fleet.deploy(
        source("Service"),
        trigger(),
        made(
            '{{ "{{ .Cluster.metadata.labels.tier }}" }}',
            "projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok",
        ),
    )
    fleet.write("east", service("web"))
    fleet.pump()
    assert [each["data"]["v"] for each in east.objects(CONFIG)] == ["gold"]

    fleet.declare.label(EAST, {"tier": "iron"})
    fleet.pump()

    assert [each["data"]["v"] for each in east.objects(CONFIG)] == ["iron"]


def test_a_definition_and_its_objects_may_come_in_one_profile(fleet: Fleet) -> None:
    """The object waits until its kind is served, in the scope that its definition says."""
    east = fleet.register("east", env="production")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bells.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"plural": "bells", "kind": "Bell"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    bell = {"apiVersion": "example.org/v1", "kind": "Bell", "metadata": {"name": "front"}}
    contents = holder("bells", json.dumps(bell), json.dumps(definition))
    fleet.deploy(join(profile(name="bells"), contents))

    kind = GVK("example.org", "v1", "Bell")
    assert east.names(kind) == ["front"]
    kept = fleet.records.inventories.get(EAST, "bells")
    assert kept
    assert ObjectKey(kind, "", "front").identity in kept.value.held

    fleet.delete("ClusterProfile", "bells")
    assert fleet.records.owners.get(EAST, ObjectKey(kind, "", "front").identity) is None


def test_an_object_with_a_colon_in_its_name_is_removed_too(fleet: Fleet) -> None:
    """RBAC names such as `system:web` are keys like all others."""
    east = fleet.register("east", env="production")
    role = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
    assert east.resource(role) == Resource(role, "clusterroles", namespaced=False)
    fleet.deploy(
        source(),
        trigger(),
        holder(
            "made",
            """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: 'system:{{ .Resource.metadata.name }}', namespace: ignored}
rules: []
""",
            annotations=INSTANTIATE,
        ),
    )
    stored = fleet.write("east", service("web"))
    fleet.pump()
    assert east.names(role) == ["system:web"]

    fleet.drop("east", stored)
    fleet.pump()

    assert east.objects(role) == []
    assert fleet.records.owners.get(EAST, ObjectKey(role, "", "system:web").identity) is None


def test_a_cluster_deregistered_during_work_leaves_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Records that a resync writes after the deregistration are deleted a little later."""
    whole = east.page

    def late(gvk: GVK, **more: str) -> object:
        fleet.declare.deregister(EAST)
        return whole(gvk, **more)

    east.put(service("db"))
    east.page = late  # type: ignore[assignment, method-assign]
    fleet.resync()
    assert fleet.send("east", {"object": service("web")}).status == 401
    fleet.wait(timedelta(minutes=3))

    left = [
        partition
        for partition in ("observation", "match", "inventory", "owner", "outcome", "strikes")
        if list(fleet.store.query(f"{partition}/{EAST}"))
    ]
    assert left == []
    assert [fleet.store.get(each, EAST) for each in ("cluster", "gate", "health")] == [None] * 3
    assert list(fleet.records.profiles.of("made")) == []


def test_a_deregistration_that_was_killed_is_finished(fleet: Fleet, east: FakeKube) -> None:
    """The cluster's record is deleted first, so that a later worker knows that it was to go."""
    with failing(fleet.records.store, "delete", SystemExit(9)), pytest.raises(SystemExit):
        fleet.declare.deregister(EAST)
    fleet.store._store.delete("cluster", EAST)
    fleet.clock.advance(timedelta(minutes=1))
    assert fleet.declare.resume() == 1
    fleet.pump()

    with pytest.raises(MissingError):
        fleet.declare.deregister(EAST)
    assert list(fleet.records.observations.heads(EAST)) == []
    assert fleet.records.gates.get(EAST) is None
    del east


def test_a_profile_that_waits_to_leave_a_cluster_ends_with_the_cluster(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its trigger is deleted, so no other message would ask for it."""
    east.fail_with(DeniedError("cluster 'fleet/east' refuses: no right to delete"), "remove")
    fleet.delete("EventTrigger", "made")
    assert [each.leaving for each in fleet.records.profiles.of("made")] == [(EAST,)]

    fleet.declare.deregister(EAST)
    fleet.wait(timedelta(minutes=1))

    assert list(fleet.records.profiles.of("made")) == []
