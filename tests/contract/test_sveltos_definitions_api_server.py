"""A configuration cluster with Sveltos' own definitions, whose status has no conditions."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.configuration.definitions import DEFINITIONS, make_definitions
from bellhop.core.gvk import GVK
from infra.lab.cluster import Cluster
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, profile, source, trigger
from tests.unit.configuration.objects import kube_of
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]
pytestmark = pytest.mark.oldest

HUB = "fleet/hub"
PROFILE = GVK("config.projectsveltos.io", "v1beta1", "ClusterProfile")
TRIGGER = GVK("lib.projectsveltos.io", "v1beta1", "EventTrigger")
EVENT = GVK("", "v1", "Event")
OURS = ("conditions", "observedGeneration")


def make_sveltos_definitions() -> Iterator[dict[str, Any]]:
    """Yield the definitions without the fields that Sveltos' do not have."""
    for each in make_definitions(rules=False):
        definition = deepcopy(each)
        for version in definition["spec"]["versions"]:
            status = version["schema"]["openAPIV3Schema"]["properties"].get("status", {})
            for name in OURS:
                status.get("properties", {}).pop(name, None)
        yield definition


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """An administrator's client of a cluster with Sveltos' definitions."""
    client = kube_of(source_cluster)
    for each in make_sveltos_definitions():
        client.apply(each)
    for each in DEFINITIONS:
        gvk = GVK.parse(each.api_version, each.kind)
        eventually(f"{each.kind} is served", lambda gvk=gvk: client.resource(gvk))
    yield client
    client.close()


@pytest.fixture
def fleet(tmp_path: Path, kube: KubeClient) -> Iterator[Fleet]:
    """An installation whose hub is that cluster."""
    one = Fleet(tmp_path)
    one.register("hub")
    one.register("east", env="production")
    one.access.clusters[HUB] = kube  # type: ignore[assignment]
    one.declare.configure(HUB, "on")
    yield one
    one.close()


def list_versions(kube: KubeClient) -> dict[str, str]:
    """Return the resource version of each object that users or Bellhop wrote."""
    kinds = [GVK.parse(each.api_version, each.kind) for each in DEFINITIONS]
    found = (each for gvk in (*kinds, EVENT) for each in kube.list(gvk))
    return {f"{x['kind']}/{x['metadata']['name']}": x["metadata"]["resourceVersion"] for x in found}


def test_users_see_what_sveltos_fields_can_say(fleet: Fleet, kube: KubeClient) -> None:
    """The rest is in Events, and resyncs write none of it again."""
    wrong = trigger("wrong", one="false", more="maxUpdate: many")
    for text in (profile(), holder("own", config("made")), source(), wrong):
        kube.apply(yaml.safe_load(text))
    fleet.resync(HUB)

    status = (kube.get(PROFILE, "", "own") or {})["status"]
    assert [each["name"] for each in status["updatedClusters"]["clusters"]] == ["east"]
    assert not status.keys() & set(OURS)
    summaries = list(kube.list(PROFILE._replace(kind="ClusterSummary")))
    assert summaries[0]["status"]["featureSummaries"][0]["status"] == "Provisioned"
    [event] = [each for each in kube.list(EVENT) if each["source"].get("component") == "bellhop"]
    assert event["involvedObject"]["kind"] == "EventTrigger"
    assert "maxUpdate" in event["message"]

    before = list_versions(kube)
    for _ in range(3):
        fleet.resync(HUB)
        fleet.resync("fleet/east")
        fleet.wait()
    assert list_versions(kube) == before
