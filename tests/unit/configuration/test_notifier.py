"""Status and mirrors follow what happens, without anybody asking for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from bellhop.configuration.notifier import StatusNotifier
from bellhop.configuration.records import ConfiguredObject
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import UnreachableError
from bellhop.ports.kube import Manifest
from bellhop.state.envelope import Envelope
from bellhop.state.messages import Publisher, ReadBack, Resync, WriteStatus
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    cluster_set,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.fakes.mortal import kill_before_publishing
from tests.unit.configuration.hub import Hub, find_gvk
from tests.unit.configuration.objects import sveltos_cluster
from tests.unit.configuration.test_status import truths

SUMMARY = GVK("config.projectsveltos.io", "v1beta1", "ClusterSummary")
CONTENT = GVK("config.projectsveltos.io", "v1beta1", "ClusterConfiguration")
REPORT = GVK("lib.projectsveltos.io", "v1beta1", "EventReport")
EVENTS = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
WRITES = ("apply", "apply status", "merge", "remove")


def find(hub: Hub, kind: str, name: str) -> Manifest:
    found = hub.kube.get(find_gvk(kind), "", name)
    assert found
    return found


def test_a_profile_gets_its_status_and_a_summary(hub: Hub) -> None:
    """Of the same generation, once it is deployed."""
    hub.write(join(profile(), holder("own", config("a"))))

    stored = find(hub, "ClusterProfile", "own")
    [summary], [content] = hub.kube.objects(SUMMARY), hub.kube.objects(CONTENT)

    assert truths(stored["status"])["Ready"] == "True"
    assert summary["status"]["featureSummaries"][0]["status"] == "Provisioned"
    assert summary["metadata"]["ownerReferences"][0]["uid"] == stored["metadata"]["uid"]
    resources = content["status"]["clusterProfileResources"]
    assert resources[0]["clusterProfileName"] == "own"


def test_an_event_gets_a_report_and_a_profile(hub: Hub) -> None:
    """They end with the object."""
    hub.write(EVENTS)
    stored = hub.fleet.write("east", service("a"))
    hub.fleet.pump()

    made = [
        each
        for each in hub.kube.objects(find_gvk("ClusterProfile"))
        if "eventtrigger.lib.projectsveltos.io/eventtriggername" in each["metadata"]["labels"]
    ]
    [report] = hub.kube.objects(REPORT)

    assert len(made) == 1
    assert report["spec"]["matchingResources"][0]["name"] == "a"
    assert report["status"]["phase"] == "Processed"
    assert truths(find(hub, "EventTrigger", "made")["status"])["Ready"] == "True"

    hub.fleet.drop("east", stored)
    hub.fleet.wait(timedelta(minutes=5))
    assert hub.kube.objects(find_gvk("ClusterProfile")) == []
    assert hub.kube.objects(SUMMARY) == []


def test_a_rejected_object_says_why(hub: Hub) -> None:
    """In its conditions, as kubectl shows them."""
    hub.write(profile(more="tier: 0"))

    conditions = find(hub, "ClusterProfile", "own")["status"]["conditions"]

    assert {each["reason"] for each in conditions} == {"Invalid"}
    assert "tier" in conditions[0]["message"]


def test_a_set_is_current_after_a_resync(hub: Hub) -> None:
    """No event of it says that a cluster has come."""
    hub.write(cluster_set(None))
    hub.fleet.register("west", env="production")
    hub.fleet.resync("fleet/hub")

    status = find(hub, "ClusterSet", "active")["status"]

    assert len(status["selectedClusterRefs"]) == 2


def test_nothing_is_written_twice(hub: Hub) -> None:
    """A resync of all clusters finds nothing to write."""
    hub.write(join(profile(), holder("own", config("a"))))
    hub.fleet.resync("fleet/hub")
    before = len(hub.kube.calls)

    for cluster in ("fleet/hub", "fleet/east"):
        hub.fleet.resync(cluster)

    assert [each for each in hub.kube.calls[before:] if each.verb in WRITES] == []


def test_after_an_outage_of_the_hub_all_is_written(hub: Hub) -> None:
    """What is deployed meanwhile is not held up by it."""
    hub.write(join(profile(), holder("own", config("a"))))
    hub.kube.fail_with(UnreachableError("no route"))
    hub.fleet.wait(timedelta(minutes=6), times=2)
    hub.fleet.register("west", env="production")
    hub.fleet.wait(timedelta(minutes=1))
    west = hub.fleet.access.clusters["fleet/west"]
    assert west.names() == ["a"]

    hub.kube.fail_with(None)
    hub.fleet.wait(timedelta(minutes=10), times=3)

    clusters = sorted(each["spec"]["clusterName"] for each in hub.kube.objects(SUMMARY))
    assert clusters == ["east", "west"]


def test_a_request_to_write_all_outlasts_a_death(hub: Hub) -> None:
    """It is kept until its messages are published; then a resync publishes them no more."""
    hub.write(join(profile(), holder("own", config("a"))))
    hub.kube.drop(SUMMARY, "fleet", "own-sveltos-east")
    hub.fleet.clock.advance(timedelta(seconds=1))
    hub.fleet.records.written.request_all(hub.fleet.clock.now())
    hub.fleet.clock.advance(timedelta(seconds=1))
    hub.fleet.publisher.publish([Resync("fleet/hub")])
    is_of_cluster = lambda each: isinstance(each, WriteStatus) and each.cluster  # noqa: E731
    kill_before_publishing(hub.fleet.publisher, is_of_cluster, hub.fleet.pump)
    assert hub.kube.objects(SUMMARY) == []

    hub.fleet.wait(timedelta(minutes=3))
    assert len(hub.kube.objects(SUMMARY)) == 1
    hub.kube.drop(SUMMARY, "fleet", "own-sveltos-east")
    hub.fleet.resync("fleet/hub")
    assert hub.kube.objects(SUMMARY) == []


def test_without_a_configuration_cluster_no_message_is_published(fleet: Fleet) -> None:
    """An installation with files does no more than before."""
    fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", config("a"))))

    assert list(fleet.records.written.rows("ClusterProfile//own")) == []


class Published(Publisher):
    """Keeps messages instead of sending them."""

    def __init__(self) -> None:
        super().__init__({})
        self.messages: list[Envelope] = []

    def publish(self, messages: Iterable[Envelope]) -> None:
        self.messages += messages


def test_the_status_of_a_cluster_follows_its_reading(hub: Hub) -> None:
    """A resync of the hub has each cluster's object read, so that it adds no second message."""
    published, fleet = Published(), hub.fleet
    known = ConfiguredObject("u-1", "7", 1, "Rejected", in_force=False, at=fleet.clock.now())
    fleet.records.configured.put("SveltosCluster", "prod", "eu-1", known)
    notifier = StatusNotifier(fleet.records, fleet.catalogs, published)
    key = ObjectKey(find_gvk("SveltosCluster"), "prod", "eu-1")

    notifier.follow(Resync("fleet/hub"))
    assert WriteStatus("SveltosCluster", "prod", "eu-1") not in published.messages

    notifier.follow(ReadBack("fleet/hub", str(key), "u-1", 0))
    assert published.messages[-1] == WriteStatus("SveltosCluster", "prod", "eu-1")


def test_the_status_of_a_cluster_follows_its_connection(hub: Hub) -> None:
    """A cluster that nothing is deployed to is down, and answers again: its status says so."""
    fleet, east = hub.fleet, hub.fleet.access.clusters["fleet/east"]
    hub.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}})
    stored = hub.kube.put(sveltos_cluster(namespace="fleet", name="east", finalizers=[]))
    uid, at = stored["metadata"]["uid"], fleet.clock.now()
    known = ConfiguredObject(uid, "7", 1, "InForce", in_force=True, at=at)
    fleet.records.configured.put("SveltosCluster", "fleet", "east", known)

    def read_status() -> tuple[str, bool]:
        found = hub.kube.get(find_gvk("SveltosCluster"), "fleet", "east")
        assert found
        status = found["status"]
        return status["connectionStatus"], "no route" in status.get("failureMessage", "")

    east.fail_with(UnreachableError("no route"))
    fleet.resync("fleet/east")
    fleet.wait(timedelta(seconds=30))
    assert read_status() == ("Down", True)

    east.fail_with(None)
    fleet.wait(timedelta(minutes=2), times=3)
    assert read_status() == ("Healthy", False)
