"""The way of writes: a real API server calls a real forwarder, which sends the stored objects."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from infra.lab.cluster import Cluster
from tests.infra.forwarder_rig import MAPS, SCALER_VERSIONS, SERVICES, Rig, config_map, rigged
from tests.waiting import eventually

pytestmark = pytest.mark.oldest


@pytest.fixture
def rig(tmp_path: Path, source_cluster: Cluster) -> Iterator[Rig]:
    with rigged(tmp_path, source_cluster) as rig:
        yield rig.ready()


def key(name: str) -> str:
    return str(ObjectKey(GVK("", "v1", "ConfigMap"), "default", name))


def test_sends_a_created_object_as_it_was_stored(rig: Rig) -> None:
    """The item is the stored object with its version, without managedFields, and a time."""
    stored = rig.api.create("made", colour="blue")
    rig.settle()

    [item] = rig.inbox.named("made")

    stored["metadata"].pop("managedFields")
    assert stored == item["object"]
    assert item["rang"].startswith("20")


def test_waits_for_a_create_that_another_webhook_delays(rig: Rig) -> None:
    """One that Bellhop applies shows a version in its review: it is sent, and never as deleted."""
    rig.delay()
    manifest = config_map("late", labels={"delayed": "yes"})
    manifest["metadata"]["namespace"] = "default"
    read = rig.metric("reads_total")
    with ThreadPoolExecutor(1) as pool:
        applying = pool.submit(rig.admin.apply, manifest, uid="")
        eventually("it was looked for", lambda: rig.metric("reads_total") > read + 1)
        assert not applying.done()
        rig.inbox.may_pass.set()
        stored = applying.result()
    rig.settle()

    assert [item["object"]["metadata"]["uid"] for item in rig.inbox.named("late")] == [
        stored["metadata"]["uid"]
    ]


def test_sends_a_generated_name(rig: Rig) -> None:
    """An object whose name the API server makes up is found by that name."""
    body = config_map("")
    body["metadata"] = {"generateName": "made-up-"}
    name = rig.api.do("POST", MAPS, body)["metadata"]["name"]
    rig.settle()

    assert len(rig.inbox.named(name)) == 1


def test_sends_a_change_of_status(rig: Rig) -> None:
    """What is written to the status subresource only is sent with the whole object."""
    ports = [{"port": 80}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer", "ports": ports},
    }
    rig.api.do("POST", SERVICES, service)
    status = {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}
    rig.api.do("PATCH", f"{SERVICES}/web/status", {"status": status})
    rig.settle()

    assert rig.inbox.named("web")[-1]["object"]["status"] == status


def test_says_which_writes_are_bellhops_own(rig: Rig) -> None:
    """By the manager of the request: who takes a label away leaves no trace in the object."""
    ours = "?fieldManager=bellhop"
    labelled = config_map("ours")
    labelled["metadata"]["labels"] = {"a": "b"}
    rig.api.do("POST", f"{MAPS}{ours}", labelled)
    rig.settle()
    rig.api.do("PATCH", f"{MAPS}/ours{ours}", {"data": {"colour": "red"}})
    rig.settle()
    rig.api.do("PATCH", f"{MAPS}/ours", {"metadata": {"labels": {"a": None}}})
    rig.settle()
    rig.api.do("DELETE", f"{MAPS}/ours")
    rig.settle()

    created, changed, taken, deleted = rig.inbox.named("ours")
    assert [each.get("own") for each in (created, changed, taken, deleted)] == [
        True,
        True,
        None,
        None,
    ]
    assert "labels" not in taken["object"]["metadata"]
    assert "gone" in deleted


def test_sends_a_burst_once_when_the_way_is_slow(rig: Rig) -> None:
    """While one request is on its way, a hundred writes to one object become one item."""
    rig.inbox.answers.clear()
    rig.api.create("busy")
    for number in range(100):
        rig.api.do("PATCH", f"{MAPS}/busy", {"data": {"number": str(number)}})
    rig.inbox.answers.set()
    rig.settle()

    items = rig.inbox.named("busy")
    assert len(items) <= 3
    assert items[-1]["object"]["data"] == {"number": "99"}


def test_ends_a_burst_with_the_last_state(rig: Rig) -> None:
    """However the writes and the looks interleave, versions ascend and the last one is sent."""
    rig.api.create("busy")
    for number in range(60):
        rig.api.do("PATCH", f"{MAPS}/busy", {"data": {"number": str(number)}})
    rig.settle()

    items = rig.inbox.named("busy")
    versions = [int(item["object"]["metadata"]["resourceVersion"]) for item in items]
    # One may come twice, since it is looked at again where a write was about to follow it.
    assert sorted(versions) == versions
    assert items[-1]["object"]["data"] == {"number": "59"}


def test_sends_a_deletion_with_uid_and_version(rig: Rig) -> None:
    """A deletion is sent with the uid and the last known version."""
    metadata = rig.api.create("old")["metadata"]
    rig.settle()
    rig.api.do("DELETE", f"{MAPS}/old")
    rig.settle()

    version = int(metadata["resourceVersion"])
    deleted = {"key": key("old"), "uid": metadata["uid"], "version": version}
    assert rig.inbox.named("old")[-1]["gone"] == deleted


def test_sends_each_deletion_of_a_collection(rig: Rig) -> None:
    """One request that deletes many is sent as one item each."""
    for number in range(5):
        rig.api.create(f"old-{number}", labels={"group": "old"})
    rig.settle()
    rig.api.do("DELETE", f"{MAPS}?labelSelector=group%3Dold")
    rig.settle()

    deleted = {item["gone"]["key"] for item in rig.inbox.items if "gone" in item}
    assert {key(f"old-{number}") for number in range(5)} == deleted


def test_sends_a_finalized_objects_end_to_come_and_then_its_end(rig: Rig) -> None:
    """Deleting sends the object that is ending; removing its last finalizer sends its deletion."""
    rig.api.create("held", finalizers=["example.com/hold"])
    rig.settle()
    rig.api.do("DELETE", f"{MAPS}/held")
    rig.settle()
    ending = rig.inbox.named("held")[-1]
    rig.api.do("PATCH", f"{MAPS}/held", {"metadata": {"finalizers": None}})
    rig.settle()

    assert "deletionTimestamp" in ending["object"]["metadata"]
    assert rig.inbox.named("held")[-1]["gone"]["uid"] == ending["object"]["metadata"]["uid"]


def test_sends_the_new_object_after_a_quick_replacement(rig: Rig) -> None:
    """Deleted and created again at once, the last word is about the new object."""
    for _ in range(10):
        rig.api.create("again")
        rig.api.do("DELETE", f"{MAPS}/again")
    uid = rig.api.create("again")["metadata"]["uid"]
    rig.settle()

    assert rig.inbox.named("again")[-1]["object"]["metadata"]["uid"] == uid


def test_sends_the_end_after_a_quick_end(rig: Rig) -> None:
    """Created and deleted at once, the last item says that it is deleted."""
    uid = rig.api.create("brief")["metadata"]["uid"]
    rig.api.do("DELETE", f"{MAPS}/brief")
    rig.settle()

    assert rig.inbox.named("brief")[-1]["gone"]["uid"] == uid


@pytest.mark.parametrize("written", SCALER_VERSIONS)
def test_sends_every_version_that_counts(rig: Rig, written: str) -> None:
    """Any version of a kind may be written, made and deleted: all writes that count are sent."""
    path = f"/apis/autoscaling/{written}/namespaces/default/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    scaler = {
        "apiVersion": f"autoscaling/{written}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": target},
    }
    uid = rig.api.do("POST", path, scaler)["metadata"]["uid"]
    rig.settle()
    made = [item["object"] for item in rig.inbox.named("h")]
    rig.api.do("DELETE", f"{path}/h")
    rig.settle()
    deleted = [item["gone"] for item in rig.inbox.named("h") if "gone" in item]

    versions = {"autoscaling/v1", f"autoscaling/{SCALER_VERSIONS[-1]}"}
    assert {each["apiVersion"] for each in made} == versions
    assert {each["metadata"]["uid"] for each in made} == {uid}
    assert {ObjectKey.parse(each["key"]).gvk.api_version for each in deleted} == versions


def test_sends_nothing_of_dry_runs(rig: Rig) -> None:
    """Dry runs of a create, an update and a deletion are not even looked at."""
    rig.api.create("real")
    rig.settle()
    rig.inbox.items.clear()
    reads = rig.metric("reads_total")
    rig.api.do("POST", f"{MAPS}?dryRun=All", config_map("unreal"))
    rig.api.do("PATCH", f"{MAPS}/real?dryRun=All", {"data": {"a": "b"}})
    rig.api.do("DELETE", f"{MAPS}/real?dryRun=All")

    assert (rig.metric("spooled"), rig.metric("ignored_total")) == (0, 3)
    assert rig.metric("reads_total") == reads
    assert rig.inbox.items == []


def test_sends_nothing_of_an_update_that_changes_nothing(rig: Rig) -> None:
    """An object that is written as it is does not send an event."""
    stored = rig.api.create("same", a="b")
    rig.settle()
    rig.inbox.items.clear()
    rig.api.do("PUT", f"{MAPS}/same", stored)

    assert rig.metric("ignored_total") == 1
    assert (rig.metric("spooled"), rig.inbox.items) == (0, [])


def test_sends_nothing_of_denied_writes(rig: Rig) -> None:
    """Creates, updates and deletions that another webhook denies end as nothing, after a while."""
    rig.api.create("kept", labels={"kind": "kept"})
    rig.deny()
    eventually(
        "the other webhook denies",
        lambda: rig.api.ask("POST", MAPS, config_map("no-1", labels={"denied": "yes"}))[0] >= 400,
    )
    rig.settle()
    rig.inbox.items.clear()
    change = {"metadata": {"labels": {"denied": "yes"}}}
    merge = "application/merge-patch+json"
    began = time.monotonic()
    assert rig.api.ask("POST", MAPS, config_map("no-2", labels={"denied": "yes"}))[0] >= 400
    assert rig.api.ask("PATCH", f"{MAPS}/kept", change, media=merge)[0] >= 400
    rig.settle()

    assert rig.inbox.items == []
    assert rig.metric("nothing_total") >= 2
    assert time.monotonic() - began > 2


def test_sends_nothing_of_a_create_that_comes_too_late(rig: Rig) -> None:
    """A create of an existing object calls the webhook, fails, and is sent to nobody."""
    rig.api.create("first")
    rig.settle()
    rig.inbox.items.clear()
    status, _ = rig.api.ask("POST", MAPS, config_map("first"))
    rig.settle()

    assert status == 409
    assert rig.inbox.items == []


def test_sends_large_objects_each_in_a_request_of_its_own(rig: Rig) -> None:
    """Objects near an API server's limit are sent, no two in one request."""
    rig.inbox.answers.clear()
    for number in range(4):
        rig.api.create(f"large-{number}", text="x" * 900_000)
    rig.inbox.answers.set()
    rig.settle()

    assert len(rig.inbox.items) == 4
    assert max(rig.inbox.batches) == 1


def test_takes_no_more_time_of_a_write_than_is_sane(
    rig: Rig, record_property: pytest.RecordProperty
) -> None:
    """Writes succeed with and without the webhook; their times are recorded, not compared."""

    def median(prefix: str) -> float:
        times = []
        for number in range(100):
            begun = time.perf_counter()
            rig.api.create(f"{prefix}-{number}")
            times.append(time.perf_counter() - begun)
        return sorted(times)[50] * 1000

    hooked = median("hooked")
    rig.settle()
    rig.api.do(
        "DELETE",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/bellhop-forwarder",
    )
    time.sleep(0.2)
    bare = median("bare")

    record_property("write_ms", {"bare": round(bare, 2), "hooked": round(hooked, 2)})
    print(f"write: bare {bare:.2f} ms, hooked {hooked:.2f} ms")
    assert hooked < 1000
