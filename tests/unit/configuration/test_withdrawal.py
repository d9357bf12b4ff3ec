"""Deleted objects of the configuration cluster: finalizers, changes as one, and what is held."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.configuration.origin import clear_configuration_cluster
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import ConflictError, UnreachableError
from tests.fakes.hooks import failing
from tests.fakes.manifests import config, holder, profile, source, trigger
from tests.unit.configuration.hub import HUB, SETTLE, Hub, find_gvk

FINALIZER = "clusterprofilefinalizer.projectsveltos.io"
DEFINITIONS = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
MIRRORED = ("ClusterProfile", "ClusterSummary")
NAMES = [f"p{number:02}" for number in range(24)]


def read(hub: Hub, name: str = "own") -> dict[str, Any] | None:
    return hub.kube.get(find_gvk("ClusterProfile"), "", name)


def write_many(hub: Hub) -> None:
    """Write profiles that are guarded if they go at once."""
    hub.write(*map(own, NAMES))
    assert hub.east.names() == NAMES


def shown(found: dict[str, Any]) -> dict[str, Any]:
    """Return what an object shows, but what each life of it has its own."""
    metadata = {"name": found["metadata"]["name"], "labels": found["metadata"].get("labels")}
    return {"metadata": metadata, "spec": found["spec"], "status": found["status"]}


def own(name: str) -> str:
    return "---".join((profile(name=name), holder(name, config(name))))


def test_an_object_stays_until_nothing_of_it_is_left(hub: Hub) -> None:
    """Its finalizer has Sveltos' name, and others' stay."""
    hub.write(profile(), holder("own", config("made")))
    found = read(hub)
    assert found
    assert found["metadata"]["finalizers"] == [FINALIZER]
    hub.kube.put({**found, "metadata": {**found["metadata"], "finalizers": [FINALIZER, "a/b"]}})

    hub.east.fail_with(UnreachableError("away"))
    hub.delete("ClusterProfile", "own")
    found = read(hub)
    assert found
    assert found["metadata"]["finalizers"] == [FINALIZER, "a/b"]
    assert hub.read("ClusterProfile", "own").state == "Ending"

    hub.east.fail_with(None)
    hub.fleet.wait(times=3)
    assert hub.east.names() == []
    found = read(hub)
    assert found
    assert found["metadata"]["finalizers"] == ["a/b"]
    assert hub.fleet.records.configured.get("ClusterProfile", "", "own") is None


def test_an_object_with_leave_policies_goes_at_once(hub: Hub) -> None:
    hub.write(profile(more="stopMatchingBehavior: LeavePolicies"), holder("own", config("made")))
    hub.delete("ClusterProfile", "own")

    assert (read(hub), hub.east.names()) == (None, ["made"])


def test_a_trigger_stays_until_its_last_profile_has_left(hub: Hub) -> None:
    hub.write(source(), trigger(), holder("made", config("answer")))
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    hub.fleet.write("east", {"apiVersion": "v1", **service, "spec": {}})
    hub.fleet.pump()
    assert hub.east.names() == ["answer"]

    hub.delete("EventTrigger", "made")

    assert hub.kube.get(find_gvk("EventTrigger"), "", "made") is None
    assert hub.east.names() == []


def test_what_is_deleted_at_once_is_one_change_and_is_held(hub: Hub) -> None:
    """The object says by which change, and its release lets both go."""
    write_many(hub)
    for name in NAMES:
        found = read(hub, name)
        assert found
        hub.kube.remove(find_gvk("ClusterProfile"), "", name)
        hub.hint(found, before=int(found["metadata"]["resourceVersion"]))
    hub.fleet.pump()
    hub.fleet.wait(SETTLE, times=6)

    assert hub.east.names() == NAMES
    (change,) = {each.value.change for each in hub.fleet.records.removals.all()}
    found = read(hub, "p07")
    assert found
    assert found["metadata"]["annotations"]["bellhop.dev/held"] == change
    assert change in hub.read("ClusterProfile", "p07").message

    hub.fleet.release()
    hub.fleet.wait(times=3)
    assert hub.east.names() == []
    assert [read(hub, name) for name in NAMES] == [None] * len(NAMES)


def test_what_is_made_again_at_once_stays(hub: Hub) -> None:
    """As `kubectl replace --force` does; nothing leaves its cluster in between."""
    hub.write(profile(), holder("own", config("made")))
    before = hub.east.objects()
    found = read(hub)
    assert found
    bare = {**found, "metadata": {"name": "own", "finalizers": []}}
    hub.kube.drop(find_gvk("ClusterProfile"), "", "own")
    hub.hint(found, before=int(found["metadata"]["resourceVersion"]))
    hub.fleet.pump()
    assert hub.read("ClusterProfile", "own").state == "Leaving"
    hub.hint(hub.kube.put(bare), before=0)
    hub.fleet.wait(SETTLE, times=3)

    assert hub.read("ClusterProfile", "own").state == "InForce"
    assert hub.east.objects() == before


def test_what_is_missing_without_an_event_stays_in_force(hub: Hub) -> None:
    """As after an etcd of yesterday; it is withdrawn by a user, or found again."""
    names = NAMES[:4]
    hub.write(*map(own, names))
    kept = {name: read(hub, name) for name in names}
    for found in kept.values():
        assert found
        hub.kube.drop(find_gvk("ClusterProfile"), "", found["metadata"]["name"])
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=2)

    assert hub.east.names() == names
    assert {hub.read("ClusterProfile", name).state for name in names} == {"Missing"}
    hub.fleet.delete("ClusterProfile", "p00")
    assert hub.east.names() == names[1:]
    hub.write(own("p01"))
    assert hub.read("ClusterProfile", "p01").state == "InForce"
    with pytest.raises(ConflictError, match="holds it"):
        hub.fleet.declare.delete([("ClusterProfile", "", "p01")])

    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=2)
    assert hub.fleet.records.configured.get("ClusterProfile", "", "p00") is None
    assert hub.east.names() == names[1:]


def test_what_an_older_state_of_the_cluster_lacks_is_written_again(hub: Hub) -> None:
    """Statuses and mirrors of before are gone or old with it, and nothing else changes."""
    hub.write(*map(own, NAMES[:2]))
    before = [each for each in hub.kube.objects() if each["kind"] in MIRRORED]
    for each in before:
        metadata = each["metadata"]
        if each["kind"] == "ClusterSummary":
            hub.kube.drop(
                find_gvk("ClusterProfile")._replace(kind=each["kind"]), "fleet", metadata["name"]
            )
        else:
            hub.kube.put({**each, "status": {}})
            # Its version is less than the one that was read last.
            stored = hub.kube._objects[ObjectKey.of(each).identity]
            stored["metadata"]["resourceVersion"] = "7"
    hub.fleet.clock.advance(SETTLE)
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=2)

    after = [each for each in hub.kube.objects() if each["kind"] in MIRRORED]
    assert list(map(shown, after)) == list(map(shown, before))
    assert {hub.read("ClusterProfile", name).state for name in NAMES[:2]} == {"InForce"}
    assert hub.east.names() == NAMES[:2]


@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2]], ids=["one", "two"])
def test_a_definition_that_is_deleted_withdraws_nothing(hub: Hub, names: list[str]) -> None:
    """It waits for no finalizer of its objects; once it is back they are found again."""
    hub.write(*map(own, names))
    definition = "clusterprofiles.config.projectsveltos.io"
    stored = hub.kube.get(DEFINITIONS, "", definition)
    assert stored
    held = {**stored["metadata"], "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}
    hub.kube.put({**stored, "metadata": held})
    hub.kube.remove(DEFINITIONS, "", definition)
    for name in names:
        hub.kube.remove(find_gvk("ClusterProfile"), "", name)
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=2)

    assert not any(read(hub, name) for name in names)
    assert {hub.read("ClusterProfile", name).state for name in names} == {"Missing"}
    assert hub.east.names() == names

    hub.fleet.clock.advance(SETTLE)
    hub.write(*map(own, names))
    assert hub.read("ClusterProfile", "p00").state == "InForce"
    assert hub.east.names() == names
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE)
    found = read(hub, "p00")
    assert found
    owners = [
        owner["uid"]
        for each in hub.kube.objects()
        if each["kind"] == "ClusterSummary" and each["metadata"]["name"].startswith("p00-")
        for owner in each["metadata"]["ownerReferences"]
    ]
    assert owners == [found["metadata"]["uid"]]


def test_an_object_that_goes_with_its_definition_stays_in_force(hub: Hub) -> None:
    """An event may say so of one object, before a resync finds that all of them go."""
    hub.write(*map(own, NAMES[:3]))
    definition = "clusterprofiles.config.projectsveltos.io"
    stored = hub.kube.get(DEFINITIONS, "", definition)
    assert stored
    finalizers = ["customresourcecleanup.apiextensions.k8s.io"]
    hub.kube.put({**stored, "metadata": {**stored["metadata"], "finalizers": finalizers}})
    hub.kube.remove(DEFINITIONS, "", definition)

    hub.delete("ClusterProfile", NAMES[1])

    assert hub.read("ClusterProfile", NAMES[1]).state == "Missing"
    assert hub.east.names() == NAMES[:3]


def test_what_is_being_deleted_leaves_though_no_event_came(hub: Hub) -> None:
    """Its API server says so, be it most of a kind."""
    names = NAMES[:4]
    hub.write(*map(own, names))
    for name in names[1:]:
        hub.kube.remove(find_gvk("ClusterProfile"), "", name)
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=6)

    assert hub.east.names() == names[:1]
    assert hub.kube.names(find_gvk("ClusterProfile")) == names[:1]


def test_a_death_while_it_is_withdrawn_is_repaired(hub: Hub) -> None:
    """Another worker takes over after a minute."""
    hub.write(profile(), holder("own", config("made")))
    with (
        failing(hub.fleet.records.manifests, "delete", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        hub.delete("ClusterProfile", "own")
    assert (hub.read("ClusterProfile", "own").state, hub.east.names()) == ("Ending", ["made"])

    hub.fleet.wait(times=4)
    assert (read(hub), hub.east.names()) == (None, [])


def test_ended_the_configuration_leaves_no_finalizer_and_no_mirror(hub: Hub) -> None:
    hub.write(profile(), holder("own", config("made")), source(), trigger())
    hub.write(holder("made", config("answer")))
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    hub.fleet.write("east", {"apiVersion": "v1", **service, "spec": {}})
    hub.fleet.wait(SETTLE, times=3)
    assert len(hub.kube.objects(find_gvk("ClusterProfile"))) == 2
    assert len(hub.kube.objects(find_gvk("ClusterProfile")._replace(kind="ClusterSummary"))) == 2
    hub.fleet.resync(HUB)
    assert [name for _, name, _ in hub.fleet.records.configured.list_kind("ClusterProfile")] == [
        "own"
    ]

    clear_configuration_cluster(hub.fleet.installation())

    found = read(hub)
    assert found
    assert found["metadata"]["finalizers"] == []
    hub.fleet.wait(SETTLE, times=2)
    assert hub.east.names() == ["answer", "made"]
    assert hub.kube.names(find_gvk("ClusterProfile")) == ["own"]
    assert hub.kube.names(find_gvk("ClusterProfile")._replace(kind="ClusterSummary")) == []
