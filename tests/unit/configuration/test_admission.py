"""Objects of the configuration cluster become manifests, and their deletion ends these."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bellhop.core.sveltos_annotations import PROFILE_PAUSED
from bellhop.errors import ConflictError, DeniedError
from bellhop.registration.record_update import update_cluster
from tests.fakes.hooks import failing
from tests.fakes.manifests import config, holder, profile, source, trigger
from tests.unit.configuration.hub import HUB, SETTLE, Hub, find_gvk

SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: default}
stringData: {word: hidden}
"""


def test_an_applied_profile_is_deployed_and_a_deleted_one_is_withdrawn(hub: Hub) -> None:
    """In whatever order the profile and its holder come."""
    hub.write(profile(), holder("own", config("made")))

    assert hub.east.names() == ["made"]
    assert hub.read("ClusterProfile", "own").state == "InForce"
    assert hub.read("ConfigMap", "own", "default").in_force

    hub.write(holder("own", config("made"), config("more")))
    assert hub.east.names() == ["made", "more"]

    hub.delete("ClusterProfile", "own")
    assert hub.east.names() == []
    assert not hub.is_stored("ClusterProfile", "own")


def test_a_holder_that_was_there_before_is_read_when_a_manifest_names_it(hub: Hub) -> None:
    hub.write(holder("own", config("made")))
    assert not hub.is_stored("ConfigMap", "own", "default")

    hub.write(profile())

    assert hub.east.names() == ["made"]


def test_no_other_configmap_or_secret_is_read(hub: Hub) -> None:
    """Of a template in a name all are read that it fits; of the others nobody asks."""
    hub.kube.calls.clear()
    template = "'of-{{ .Cluster.metadata.name }}'"
    named = profile().replace("name: own, namespace", f"name: {template}, namespace")
    hub.write(named, holder("of-east", config("made")), SECRET % "of-nobody", SECRET % "other")
    hub.write(holder("other", config("not")))
    hub.fleet.resync(HUB)

    read = {(call.gvk.kind, call.name) for call in hub.kube.calls if call.verb == "get"}
    holders = {each for each in read if each[0] in ("ConfigMap", "Secret")}
    assert holders == {("ConfigMap", "of-east")}
    assert hub.east.names() == ["made"]


def test_a_holder_leaves_the_store_with_the_last_manifest_that_names_it(hub: Hub) -> None:
    hub.write(profile(), holder("own", config("made")))
    hub.delete("ClusterProfile", "own")
    hub.fleet.resync(HUB)

    assert not hub.is_stored("ConfigMap", "own", "default")


def test_an_invalid_object_changes_nothing_and_says_why(hub: Hub) -> None:
    """A valid version stays in force until another one comes."""
    hub.write(profile(), holder("own", config("made")))
    hub.write(profile(more="syncMode: Sometimes"))

    kept = hub.read("ClusterProfile", "own")
    assert (kept.state, kept.in_force) == ("Rejected", True)
    assert "syncMode" in kept.message
    assert hub.east.names() == ["made"]

    hub.write(profile(more="syncMode: OneTime"))
    assert hub.read("ClusterProfile", "own").state == "InForce"

    hub.write(trigger("new").replace("oneForEvent: true", "oneForEvent: perhaps"))
    assert (hub.read("EventTrigger", "new").state, hub.is_stored("EventTrigger", "new")) == (
        "Rejected",
        False,
    )


def test_files_cannot_change_what_the_cluster_holds(hub: Hub) -> None:
    hub.write(profile(), holder("own", config("made")))

    with pytest.raises(ConflictError, match="cluster 'fleet/hub' holds it"):
        hub.fleet.apply(profile(more="syncMode: OneTime"))
    with pytest.raises(ConflictError, match="cannot delete ClusterProfile 'own'"):
        hub.fleet.declare.delete([("ClusterProfile", "", "own")])
    hub.fleet.apply(profile(name="other"))


def test_the_cluster_changes_what_files_hold_only_when_it_asks_to(hub: Hub) -> None:
    """Equal contents change nothing, and then the object is the manifest's."""
    hub.fleet.deploy(profile(), holder("own", config("made")))

    hub.write(profile(more="syncMode: OneTime"))
    kept = hub.read("ClusterProfile", "own")
    assert (kept.state, kept.in_force) == ("OtherOrigin", False)
    assert "files hold" in kept.message
    hub.delete("ClusterProfile", "own")
    assert hub.is_stored("ClusterProfile", "own")
    assert hub.east.names() == ["made"]

    hub.write(profile())
    assert hub.read("ClusterProfile", "own").state == "InForce"

    hub.fleet.deploy(profile(name="second"))
    takes = "{name: second, annotations: {bellhop.dev/take-over: files}}"
    hub.write(profile(name="second", more="syncMode: OneTime").replace("{name: second}", takes))
    assert hub.read("ClusterProfile", "second").state == "InForce"
    assert hub.east.names() == ["made"]


def test_what_files_gave_up_comes_in_force_with_the_next_resync(hub: Hub) -> None:
    hub.fleet.deploy(profile(), holder("own", config("made")))
    hub.write(profile(more="syncMode: OneTime"))

    hub.fleet.delete("ClusterProfile", "own")
    hub.fleet.resync(HUB)

    assert hub.read("ClusterProfile", "own").state == "InForce"
    assert hub.east.names() == ["made"]


def test_a_resync_finds_what_no_event_reported(hub: Hub) -> None:
    hub.write(profile(), holder("own", config("made")), sent=False)
    assert hub.east.names() == []
    hub.fleet.resync(HUB)
    assert hub.east.names() == ["made"]

    hub.write(holder("own", config("other")), sent=False)
    hub.fleet.resync(HUB)
    assert hub.east.names() == ["other"]

    hub.delete("ClusterProfile", "own", sent=False)
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=2)
    assert hub.east.names() == []


def test_a_deleted_definition_withdraws_nothing(hub: Hub) -> None:
    """Nor does a list that is refused; all is found once both are there again."""
    hub.write(profile(), holder("own", config("made")))
    gvk = find_gvk("ClusterProfile")
    resource = hub.kube.resource(gvk)
    assert resource

    hub.kube.unserve(gvk)
    hub.fleet.resync(HUB)
    assert hub.east.names() == ["made"]

    hub.kube.serve(resource)
    hub.kube.fail_with(DeniedError("no"), "list")
    hub.fleet.resync(HUB)
    hub.kube.fail_with(None)
    assert hub.east.names() == ["made"]

    hub.write(profile(more="syncMode: OneTime"))
    assert hub.read("ClusterProfile", "own").state == "InForce"


def test_an_event_trigger_of_the_cluster_works_as_one_of_files(hub: Hub) -> None:
    hub.write(source(), trigger(), holder("made", config("answer")))
    hub.fleet.write(
        "east",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {},
        },
    )
    hub.fleet.pump()
    assert hub.east.names() == ["answer"]

    hub.delete("EventSource", "watched")
    assert hub.east.names() == []


def test_a_hint_says_nothing_of_a_cluster_that_holds_no_configuration(hub: Hub) -> None:
    """Nor of a kind that is no part of it, nor of a write of Bellhop itself."""
    stored = hub.kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    pod = hub.kube.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})

    assert hub.hint(stored, before=0) == {"taken": 1, "dropped": 0}
    assert hub.hint(pod, before=0) == {"taken": 0, "dropped": 1}
    assert hub.hint(stored, before=0, own=True) == {"taken": 0, "dropped": 1}

    hub.fleet.declare.configure(HUB, "")
    hub.fleet.pump()
    assert hub.hint(stored, before=0) == {"taken": 0, "dropped": 1}


def test_a_preview_reads_everything_and_changes_nothing(hub: Hub) -> None:
    """Turned on, it deploys what it showed."""
    hub.fleet.declare.configure(HUB, "preview")
    hub.write(profile(), holder("own", config("made")))

    kept = hub.read("ClusterProfile", "own")
    assert (kept.state, kept.in_force, kept.message) == ("DryRun", False, "would be created")
    assert hub.east.names() == []

    hub.fleet.declare.configure(HUB, "on")
    hub.fleet.pump()
    assert hub.east.names() == ["made"]


def test_files_keep_everything_when_the_cluster_holds_the_configuration_no_more(hub: Hub) -> None:
    hub.write(profile(), holder("own", config("made")))

    hub.fleet.declare.configure(HUB, "")
    hub.fleet.pump()

    assert hub.east.names() == ["made"]
    hub.fleet.deploy(profile(more="syncMode: OneTime"))
    policy = hub.fleet.records.gates.get_or_none(HUB)
    assert policy
    assert policy.value.configured == ()


def test_a_change_of_the_clusters_record_keeps_its_events(hub: Hub) -> None:
    """As a renewed token does."""
    update_cluster(hub.fleet.installation(), HUB, lambda found: replace(found, labels={"a": "b"}))
    stored = hub.kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

    assert hub.hint(stored, before=0) == {"taken": 1, "dropped": 0}


def test_a_death_between_record_and_manifest_is_repaired(hub: Hub) -> None:
    """The message comes again; and a deletion in between finds the record."""
    with (
        failing(hub.fleet.records.manifests, "put", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.write(profile(), holder("own", config("made")))
    assert hub.read("ClusterProfile", "own").in_force

    hub.fleet.wait()
    assert hub.east.names() == ["made"]


def test_a_pause_by_a_command_outlasts_a_change_of_the_object(hub: Hub) -> None:
    """Until a command ends it, or the object says otherwise itself."""
    paused = {PROFILE_PAUSED: "true"}
    key = ("ClusterProfile", "", "own")
    hub.write(profile(), holder("own", config("made")))
    hub.fleet.declare.remark(key, paused)
    hub.write(profile(more="tier: 50"))

    def annotations() -> dict[str, str]:
        stored = hub.fleet.records.manifests.get(*key)
        assert stored
        return dict(stored.value["metadata"].get("annotations") or {})

    assert annotations() == paused
    hub.fleet.declare.remark(key, dict.fromkeys(paused))
    assert annotations() == {}
    hub.write(profile(more="tier: 60"))
    assert (annotations(), hub.read("ClusterProfile", "own").marks) == ({}, {})


def test_a_list_that_is_refused_holds_nothing_up(hub: Hub) -> None:
    """A profile whose refs are templates is in force, and asks for its finalizer."""
    template = "'of-{{ .Cluster.metadata.name }}'"
    hub.kube.fail_with(DeniedError("no"), "list")
    hub.write(profile().replace("name: own, namespace", f"name: {template}, namespace"))

    assert hub.read("ClusterProfile", "own").state == "InForce"
    found = hub.kube.get(find_gvk("ClusterProfile"), "", "own")
    assert found
    assert found["metadata"]["finalizers"]
