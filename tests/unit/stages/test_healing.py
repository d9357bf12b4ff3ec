"""What sweeps and later changes make good: sources that change while their cluster is away."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.core.sveltos_annotations import OWNER
from bellhop.errors import DeniedError, MissingError, UnreachableError
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import PurgeCluster, Resync
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube

CONFIG = GVK("", "v1", "ConfigMap")
ACCOUNT = GVK("", "v1", "ServiceAccount")
EAST = "fleet/east"
DOWN = UnreachableError("cluster 'fleet/east' does not answer")


def source(*kinds: str, name: str = "watched") -> str:
    selectors = ", ".join(f'{{group: "", version: v1, kind: {kind}}}' for kind in kinds)
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec: {{collectResources: true, resourceSelectors: [{selectors}]}}
"""


def trigger(origin: str = "watched", more: str = "", name: str = "made") -> str:
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  {more}
  eventSourceName: '{origin}'
  oneForEvent: true
  policyRefs: [{{kind: ConfigMap, name: made, namespace: default}}]
"""


def holder(value: str = "1", annotations: str = "projectsveltos.io/instantiate: ok") -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: made, namespace: default, annotations: {{{annotations}}}}}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: 'for-{{{{ .Resource.metadata.name }}}}', namespace: default}}
    data: {{v: '{value}'}}
"""


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster in which each Service gets a ConfigMap, and one that has it."""
    kube = fleet.register("east", env="production")
    fleet.apply(source("Service"), trigger(), holder())
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    assert made(kube) == ["for-web"]
    return kube


def made(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(CONFIG)]


def sweep(fleet: Fleet) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()


def give_up(fleet: Fleet) -> None:
    """Let time pass until nobody but the probe tries any more."""
    for _ in range(15):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=2))


def test_a_source_that_changed_while_its_cluster_was_away_counts_when_it_is_back(
    fleet: Fleet, east: FakeKube
) -> None:
    """The next scheduled sweep evaluates everything, and no dead letter has to be replayed."""
    east.fail_with(DOWN)
    fleet.apply(source("ServiceAccount"))
    give_up(fleet)
    assert fleet.queues["sweep"].list() == []
    east.fail_with(None)

    sweep(fleet)

    assert made(east) == []
    assert list(fleet.records.matches.of(EAST)) == []
    assert list(fleet.records.observations.heads(EAST)) == []


def test_a_source_that_is_deleted_withdraws_although_its_cluster_is_away(
    fleet: Fleet, east: FakeKube
) -> None:
    """What others got because of it does not wait for the cluster of the event."""
    west = fleet.register("west", dep="eng")
    fleet.apply(trigger(more="destinationClusterSelector: {matchLabels: {dep: eng}}"))
    fleet.pump()
    assert made(west) == ["for-web"]
    east.fail_with(DOWN)

    fleet.declare.delete([("EventSource", "", "watched")])
    fleet.pump()

    assert made(west) == []


@pytest.mark.usefixtures("east")
def test_a_kind_that_a_source_names_no_longer_is_let_go(fleet: Fleet) -> None:
    """It makes no difference that another source still has the kind observed."""
    fleet.apply(source("Service", name="other"), trigger("other", name="second"))
    fleet.pump()

    fleet.apply(source("ServiceAccount"))
    fleet.pump()

    assert [each.source for each in fleet.records.matches.of(EAST)] == ["other"]
    assert {each.trigger for each in fleet.records.profiles.of("made")} == set()


def test_a_kind_that_may_not_be_listed_keeps_no_other_from_being_swept(
    fleet: Fleet, east: FakeKube
) -> None:
    """The cluster is Healthy and its message names what is refused; a right given later heals."""
    whole = east.page

    def narrow(gvk: GVK, **more: str) -> object:
        if gvk == ACCOUNT:
            raise DeniedError("cluster 'fleet/east' refuses: no right to list serviceaccounts")
        return whole(gvk, **more)

    east.page = narrow  # type: ignore[assignment, method-assign]
    fleet.apply(source("ServiceAccount", "Service"))
    fleet.pump()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    east.put(account)
    east.put(service("db"))
    sweep(fleet)
    health = fleet.records.health.get(EAST).value
    assert (health.state, "serviceaccounts" in health.message) == ("Healthy", True)
    assert made(east) == ["for-db", "for-web"]

    east.page = whole  # type: ignore[method-assign]
    sweep(fleet)

    assert made(east) == ["for-db", "for-robot", "for-web"]
    assert fleet.records.health.get(EAST).value.message == ""


def test_ringing_that_cannot_be_set_up_is_told(fleet: Fleet, east: FakeKube) -> None:
    """The cluster's health says which right is missing, and sweeps go on."""
    from msgspec.structs import replace  # noqa: PLC0415 - one test's cluster

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


def test_a_cluster_that_was_made_anew_is_seen_as_it_is(fleet: Fleet, east: FakeKube) -> None:
    """Its resource versions begin again, lower than what is kept of the cluster before it."""
    fleet.write("east", service("old"))
    fleet.pump()
    anew = fleet.access.clusters[EAST] = FakeKube(EAST)
    low = iter(range(1, 1000))
    anew._versions = low  # type: ignore[assignment]
    anew.put(service("web", spec={"ports": [{"port": 1}]}))
    anew.put(service("new"))

    sweep(fleet)
    sweep(fleet)

    kept = value_of(fleet.records.observations.get(EAST, ObjectKey(SERVICE, "default", "web")))
    assert kept
    assert kept.manifest
    assert kept.manifest["spec"] == {"ports": [{"port": 1}]}
    assert [str(each.key.name) for each in fleet.records.matches.of(EAST)] == ["new", "web"]
    assert made(anew) == ["for-new", "for-web"]
    del east


def test_a_cluster_that_was_made_anew_has_nothing_of_ours(fleet: Fleet, east: FakeKube) -> None:
    """What bears an object's name there was never applied by us, whatever was held before.

    Marks that it bears are a profile's, as after a restore; without any it is somebody else's.
    """
    anew = fleet.access.clusters[EAST] = FakeKube(EAST)
    for name, marks in (("web", {OWNER: "before"}), ("theirs", {})):
        anew.put(service(name))
        head = {"name": f"for-{name}", "namespace": "default", "annotations": marks}
        anew.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": {"v": "?"}})

    sweep(fleet)

    found = {each["metadata"]["name"]: each["data"]["v"] for each in anew.objects(CONFIG)}
    assert found == {"for-web": "1", "for-theirs": "?"}
    del east


def test_a_cluster_that_is_there_is_not_tidied_up(fleet: Fleet, east: FakeKube) -> None:
    """It may have been registered again since its end was to be tidied up."""
    fleet.publisher.publish([PurgeCluster(EAST)])
    fleet.pump()

    assert len(list(fleet.records.matches.of(EAST))) == 1
    assert len(list(fleet.records.inventories.of(EAST))) == 1
    del east


def test_what_was_buried_before_a_death_is_told(fleet: Fleet, east: FakeKube) -> None:
    """Who goes on with a sweep tells of the tombs that it finds among its suspects."""
    east.drop(SERVICE, "default", "web")
    publish = fleet.queues["review"].publish

    def dies(_: object) -> None:
        raise SystemExit(9)

    fleet.queues["review"].publish = dies  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        sweep(fleet)
    fleet.queues["review"].publish = publish  # type: ignore[method-assign]
    fleet.queues["sweep"].release()
    fleet.pump()

    assert made(east) == []


def test_a_cluster_that_is_registered_again_gets_everything(fleet: Fleet) -> None:
    """A destination that was deregistered is served anew, though no profile has changed."""
    fleet.register("east", env="production")
    west = fleet.register("west", dep="eng")
    fleet.apply(
        source("Service"),
        trigger(more="destinationClusterSelector: {matchLabels: {dep: eng}}"),
        holder(),
    )
    fleet.pump()
    fleet.write("east", service("web"))
    fleet.pump()
    west.drop(CONFIG, "default", "for-web")

    fleet.declare.deregister("fleet/west")
    fleet.register("west", dep="eng")
    fleet.pump()

    assert made(west) == ["for-web"]


def test_a_source_name_that_cannot_be_rendered_harms_only_its_trigger(
    fleet: Fleet, east: FakeKube
) -> None:
    """Events of others go on, sweeps too, and what the trigger brought stays until it is right."""
    fleet.apply(
        trigger("{{ .Cluster.metadata.labels.nothing }}"),
        trigger(name="second"),
    )
    fleet.pump()
    fleet.write("east", service("db"))
    fleet.pump()
    sweep(fleet)
    assert fleet.records.health.get(EAST).value.state == "Healthy"
    objects = {each.object for each in fleet.records.profiles.of("second")}
    assert objects == {"/v1/Service/default/db", "/v1/Service/default/web"}
    assert [each.object for each in fleet.records.profiles.of("made")] == [
        "/v1/Service/default/web"
    ]
    failed = [entry for entry in fleet.ledger() if entry.what == "failed"]
    assert [entry for entry in failed if "eventSourceName" in entry.detail]

    removals = [call for call in east.calls if call.verb == "remove"]
    fleet.apply(trigger("watched"))
    fleet.pump()

    assert [call for call in east.calls if call.verb == "remove"] == removals
    assert len(list(fleet.records.profiles.of("made"))) == 2


def test_what_no_trigger_names_any_more_is_let_go(fleet: Fleet, east: FakeKube) -> None:
    """At once: matches of a source that is in force no more wait for no sweep of the clock."""
    fleet.declare.delete([("EventTrigger", "", "made")])
    fleet.pump()

    assert list(fleet.records.matches.of(EAST)) == []
    assert made(east) == []


def test_a_cluster_is_swept_by_itself_from_its_registration_on(fleet: Fleet) -> None:
    """It does not wait for the house to find that it has no timer."""
    fleet.pump()
    fleet.register("west")

    assert fleet.records.timers.get(sweep_timer("fleet/west"))


def test_nothing_is_let_go_while_a_trigger_cannot_say_its_source(
    fleet: Fleet, east: FakeKube
) -> None:
    """A source that nobody else names is not out of force for that."""
    fleet.apply(trigger("{{ .Cluster.metadata.labels.nothing }}"))
    sweep(fleet)

    assert [str(each.key.name) for each in fleet.records.matches.of(EAST)] == ["web"]
    assert made(east) == ["for-web"]


def test_a_label_that_is_read_at_deploy_time_is_followed(fleet: Fleet) -> None:
    """Labels of a destination that change are rendered anew, though the profile is the same."""
    east = fleet.register("east", env="production", tier="gold")
    fleet.apply(
        source("Service"),
        trigger(),
        holder(
            '{{ "{{ .Cluster.metadata.labels.tier }}" }}',
            "projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok",
        ),
    )
    fleet.pump()
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
    texts = "\n---\n".join(json.dumps(each) for each in (bell, definition))
    lines = "\n".join("    " + line for line in texts.splitlines())
    fleet.apply(
        f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: bells}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, name: bells, namespace: default}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: bells, namespace: default}}
data:
  main.yaml: |
{lines}
"""
    )
    fleet.pump()

    kind = GVK("example.org", "v1", "Bell")
    assert [each["metadata"]["name"] for each in east.objects(kind)] == ["front"]
    kept = fleet.records.inventories.get(EAST, "bells")
    assert kept
    assert ObjectKey(kind, "", "front").identity in kept.value.held

    fleet.declare.delete([("ClusterProfile", "", "bells")])
    fleet.pump()
    assert fleet.records.owners.get(EAST, ObjectKey(kind, "", "front").identity) is None


def test_an_object_with_a_colon_in_its_name_is_removed_too(fleet: Fleet) -> None:
    """RBAC names such as `system:web` are keys like all others."""
    east = fleet.register("east", env="production")
    role = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
    assert east.resource(role) == Resource(role, "clusterroles", namespaced=False)
    fleet.apply(
        source("Service"),
        trigger(),
        """
apiVersion: v1
kind: ConfigMap
metadata: {name: made, namespace: default, annotations: {projectsveltos.io/instantiate: ok}}
data:
  main.yaml: |
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: 'system:{{ .Resource.metadata.name }}', namespace: ignored}
    rules: []
""",
    )
    fleet.pump()
    stored = fleet.write("east", service("web"))
    fleet.pump()
    assert [each["metadata"]["name"] for each in east.objects(role)] == ["system:web"]

    fleet.drop("east", stored)
    fleet.pump()

    assert east.objects(role) == []
    assert fleet.records.owners.get(EAST, ObjectKey(role, "", "system:web").identity) is None


def test_a_cluster_that_is_forgotten_in_the_middle_of_work_leaves_nothing(
    fleet: Fleet, east: FakeKube
) -> None:
    """What a sweep writes after the cluster was deregistered is deleted a little later."""
    whole = east.page

    def late(gvk: GVK, **more: str) -> object:
        fleet.declare.deregister(EAST)
        return whole(gvk, **more)

    east.put(service("db"))
    east.page = late  # type: ignore[assignment, method-assign]
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert fleet.send("east", {"object": service("web")}).status == 401
    fleet.clock.advance(timedelta(minutes=3))
    fleet.pump()

    left = [
        partition
        for partition in ("observation", "match", "inventory", "owner", "outcome", "strikes")
        if list(fleet.store.query(f"{partition}/{EAST}"))
    ]
    assert left == []
    assert [fleet.store.get(each, EAST) for each in ("cluster", "gate", "health")] == [None] * 3
    assert list(fleet.records.profiles.of("made")) == []


def test_a_deregistration_that_was_killed_is_finished(fleet: Fleet, east: FakeKube) -> None:
    """The cluster's name goes first, so that whoever resumes knows what was meant."""
    delete = fleet.store.delete
    fleet.records.store.delete = die  # type: ignore[method-assign]

    with pytest.raises(SystemExit):
        fleet.declare.deregister(EAST)
    fleet.records.store.delete = delete  # type: ignore[method-assign]
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
    """Its trigger is gone, so nobody else would ask for it."""
    east.fail_with(DeniedError("cluster 'fleet/east' refuses: no right to delete"), "remove")
    fleet.declare.delete([("EventTrigger", "", "made")])
    fleet.pump()
    assert [each.leaving for each in fleet.records.profiles.of("made")] == [(EAST,)]

    fleet.declare.deregister(EAST)
    fleet.clock.advance(timedelta(minutes=1))
    fleet.pump()

    assert list(fleet.records.profiles.of("made")) == []


def die(*_: object, **__: object) -> bool:
    raise SystemExit(9)
