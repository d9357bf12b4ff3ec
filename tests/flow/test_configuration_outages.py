"""The cluster that holds the configuration fails, gets older data, and loses what it needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from tests.fakes.manifests import config, holder, join, profile
from tests.flow.conftest import HOOKS
from tests.flow.test_configuration_cluster import HUB, PROFILE, Hub
from tests.flow.test_configuration_cluster import hub as _hub
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)

hub = _hub
CONFIG = PROFILE.group
SUMMARY = GVK(CONFIG, "v1beta1", "ClusterSummary")
DEFINITION = ObjectKey(
    GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "", f"clusterprofiles.{CONFIG}"
)
EAST = "clusterSelector: {matchLabels: {dep: eng}}"
NAMES = ("one", "two", "three")


def own(name: str, more: str = "") -> str:
    return join(profile(EAST, name=name, more=more), holder(name, config(name)))


def key(name: str) -> ObjectKey:
    return ObjectKey(PROFILE, "", name)


def is_ready(hub: Hub, name: str) -> bool:
    """Return whether a profile shows that its present version is deployed to one cluster."""
    found = hub.source.get(key(name)) or {"metadata": {}}
    status: dict[str, Any] = found.get("status") or {}
    updated = (status.get("updatedClusters") or {}).get("clusters") or []
    current = status.get("observedGeneration") == found["metadata"].get("generation")
    return current and len(updated) == 1


def has_summary(hub: Hub, name: str) -> bool:
    """Return whether the profile that is there now has its summary."""
    found = hub.source.get(key(name))
    summary = hub.source.get(ObjectKey(SUMMARY, "fleet", f"{name}-sveltos-destination"))
    if not found or not summary or not summary.get("status"):
        return False
    owners = [each["uid"] for each in summary["metadata"]["ownerReferences"]]
    return owners == [found["metadata"]["uid"]]


def is_whole(hub: Hub, *names: str) -> bool:
    return all(is_ready(hub, each) and has_summary(hub, each) for each in names)


@pytest.fixture(autouse=True)
def _deployed(hub: Hub) -> None:
    """Have three profiles deployed."""
    hub.write(*map(own, NAMES))
    eventually("all are deployed", hub.is_deployed(*NAMES))
    eventually("all is written", lambda: is_whole(hub, *NAMES))


def status(hub: Hub) -> str:
    return " ".join(hub.stand.bellhop("status").stdout.split())


@pytest.mark.oldest
def test_an_outage_changes_nothing_and_is_made_up_for(hub: Hub) -> None:
    """What files change meanwhile is deployed, and shown in the cluster once it answers."""
    hub.source_cluster.stop()
    hub.stand.bellhop("resync", HUB)
    said = "it holds the configuration, which stays in force as it was read last"
    eventually("status says so", lambda: said in status(hub))
    assert f"{HUB} Down" in status(hub)
    assert "it has not answered since" in status(hub)
    hub.stand.do("apply", "-f", "-", stdin=own("four"))
    eventually("it is deployed", hub.is_deployed(*NAMES, "four"))
    hub.stand.do("label", "cluster", HUB, "dep=eng")
    assert {hub.shown(each, "ClusterProfile")["state"] for each in NAMES} == {"InForce"}

    hub.source_cluster.start()
    hub.post(own("one", more="tier: 50"))
    eventually("the change is in force", lambda: hub.is_in_force(key("one")), patience=60)
    names = {"four-sveltos-destination", *(f"{each}-sveltos-source" for each in NAMES)}
    eventually("what it missed is there", lambda: names <= {*hub.source.names(SUMMARY)})
    eventually("no problem is left", lambda: said not in status(hub))


def test_older_data_withdraws_nothing(hub: Hub) -> None:
    """As after a restore of yesterday's etcd: objects are missing, and others are older."""
    before = hub.source_cluster.remember()
    hub.write(own("one", more="tier: 50"), *map(own, ("four", "five", "six", "seven")))
    every = (*NAMES, "four", "five", "six", "seven")
    eventually("all are deployed", hub.is_deployed(*every))
    eventually("all is written", lambda: is_whole(hub, *every))

    hub.source_cluster.stop()
    hub.source_cluster.reset(before)
    hub.source_cluster.start()
    hub.settle()
    found = {each: hub.shown(each, "ClusterProfile") for each in every}
    assert {each for each in every if found[each]["state"] == "Missing"} == {*every} - {*NAMES}
    assert all(each["inForce"] for each in found.values())
    assert "no event said that it was deleted" in found["four"]["message"]
    assert hub.deployed() == sorted(every)
    eventually("the older version is in force", lambda: hub.is_in_force(key("one")))

    hub.write(*map(own, every[3:]))
    hub.settle()
    eventually("all is there again", lambda: is_whole(hub, *every))
    assert hub.deployed() == sorted(every)


def test_a_deleted_webhook_is_reported_and_installed_again(hub: Hub) -> None:
    """What happened without it is found by the resync that installs it."""
    assert hub.stand.bellhop("doctor", HUB).returncode == 0

    def lose_webhook() -> list[dict[str, str]]:
        # A resync that was under way installs it again.
        if hub.source.get(HOOKS):
            hub.source.delete(HOOKS)
        done = hub.stand.bellhop("doctor", HUB, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 1 else []

    reported = eventually("doctor says so", lose_webhook)
    found = [each["sentence"] for each in reported if each["verdict"] == "wrong"]
    assert any("only resyncs find changes" in each for each in found), found
    hub.post(own("four"))
    hub.source.delete(key("one"))

    hub.settle()
    eventually("what was missed is found", hub.is_deployed("two", "three", "four"))
    eventually("the webhook is there", lambda: hub.source.get(HOOKS))
    examine = lambda: hub.stand.bellhop("doctor", HUB)  # noqa: E731
    eventually(lambda: examine().stdout, lambda: examine().returncode == 0)


@pytest.mark.oldest
def test_a_deleted_definition_withdraws_nothing(hub: Hub) -> None:
    """All objects of the kind go with it; applied again, they are what they were."""
    hub.source.delete(DEFINITION)
    eventually("its objects are gone", lambda: hub.stand.do("resync", HUB) and _is_gone(hub))
    hub.settle()
    assert hub.deployed() == sorted(NAMES)
    assert {hub.shown(each, "ClusterProfile")["state"] for each in NAMES} == {"Missing"}

    hub.stand.do("install", "crds", HUB)
    eventually("the kind is served", lambda: not _is_gone(hub))
    before = {each["metadata"]["uid"] for each in hub.destination.list(GVK("", "v1", "ConfigMap"))}
    hub.settle()
    hub.write(*map(own, NAMES))
    hub.settle()
    eventually("all is there again", lambda: is_whole(hub, *NAMES))
    assert {
        each["metadata"]["uid"] for each in hub.destination.list(GVK("", "v1", "ConfigMap"))
    } == before


def _is_gone(hub: Hub) -> bool:
    try:
        hub.source.list(PROFILE)
    except LookupError:
        return True
    return False
