"""Resyncs and drift scans of a real API server, in pages of two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.resync import kind_lister, observed_kinds
from bellhop.state.messages import ReadBack, Resync
from infra.lab.cluster import Cluster
from tests.contract.real_cluster import EAST
from tests.contract.test_kube import WIDGET, wait_for, widget, widgets
from tests.contract.versions import another_version
from tests.fakes.fleet import Fleet
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
from tests.waiting import eventually

CONFIG = GVK("", "v1", "ConfigMap")
SCALER = GVK("autoscaling", "v1", "HorizontalPodAutoscaler")


@pytest.fixture
def fleet(tmp_path: Path, kube: KubeClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """An installation that knows the cluster, and reads two objects at a time."""
    for each in (kind_lister, observed_kinds):
        monkeypatch.setattr(each, "PAGE", 2)
    one = Fleet(tmp_path)
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


def there(kube: KubeClient) -> list[str]:
    return [each["metadata"]["name"] for each in kube.list(CONFIG, namespace="swept")]


def resync_east(fleet: Fleet, *, full: bool = False) -> None:
    fleet.publisher.publish([Resync(EAST, full=full)])
    fleet.pump()


def test_a_source_is_resynced_and_a_hint_counts_in_every_version(
    fleet: Fleet, kube: KubeClient
) -> None:
    """Objects are found and missed on whatever page, and one that is written in one version."""
    former = another_version(kube, SCALER)
    assert former, "every release of Kubernetes serves autoscaling in two versions"
    versions = (SCALER, former)
    for gvk in versions:
        fleet.apply(
            f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {gvk.version}}}
spec:
  resourceSelectors: [{{group: autoscaling, version: {gvk.version}, kind: {gvk.kind}}}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {gvk.version}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: {gvk.version}
"""
        )
    fleet.pump()
    spec = {"maxReplicas": 3, "scaleTargetRef": DEPLOYMENT}
    for name in "abcde":
        metadata = {"name": name, "namespace": "default"}
        kube.apply(
            {
                "apiVersion": "autoscaling/v1",
                "kind": SCALER.kind,
                "metadata": metadata,
                "spec": spec,
            }
        )
    resync_east(fleet)
    kube.remove(SCALER, "default", "b")
    kube.remove(SCALER, "default", "e")
    resync_east(fleet)
    matches = {(each.source, each.key.name) for each in fleet.records.matches.of(EAST)}
    assert matches == {(gvk.version, name) for gvk in versions for name in "acd"}

    head = fleet.records.observations.head(EAST, ObjectKey(SCALER, "default", "a"))
    assert head
    kube.remove(SCALER, "default", "a")
    hint = ReadBack(EAST, str(ObjectKey(SCALER, "default", "a")), head.uid, 0)
    fleet.stages["sweep"].handle(hint)
    fleet.pump()
    matches = {(each.source, each.key.name) for each in fleet.records.matches.of(EAST)}
    assert matches == {(gvk.version, name) for gvk in versions for name in "cd"}


SCALED = """\
apiVersion: autoscaling/{version}
kind: HorizontalPodAutoscaler
metadata: {{name: web, namespace: default}}
spec: {{maxReplicas: {most}, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: d}}}}
"""


def test_a_version_that_is_raised_in_a_manifest_removes_nothing(
    fleet: Fleet, kube: KubeClient
) -> None:
    """An API server has one object for both: it is updated, and what is held is that one."""
    former = another_version(kube, SCALER)
    assert former, "every release of Kubernetes serves autoscaling in two versions"
    fleet.apply(profile(), holder("own", SCALED.format(version=former.version, most=3)))
    fleet.pump()
    before = kube.get(SCALER, "default", "web")

    fleet.apply(holder("own", SCALED.format(version="v1", most=4)))
    fleet.pump()
    resync_east(fleet, full=True)

    after = kube.get(SCALER, "default", "web")
    assert before
    assert after
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["maxReplicas"] == 4
    assert [each.phase for each in fleet.records.outcomes.of(EAST)] == ["Provisioned"]


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
ADD_ONS = join(
    source("Widget", group="lab.example"),
    trigger(),
    holder("made", config(FOR_EACH, namespace="swept"), annotations=INSTANTIATE),
)


def test_add_ons_of_a_deleted_definitions_objects_are_withdrawn(
    fleet: Fleet, kube: KubeClient, source_cluster: Cluster
) -> None:
    """With a definition its objects go, without an event; resyncs that agree withdraw."""
    kube.apply(widgets())
    wait_for(kube, WIDGET)
    kube.apply(widget())
    fleet.apply(ADD_ONS)
    fleet.pump()
    assert there(kube) == ["for-w"]

    name = "widgets.lab.example"
    kube.remove(CRD, "", name)
    eventually("the definition is deleted", lambda: kube.get(CRD, "", name) is None)
    # An API server serves a kind for a moment longer than its definition is there. Another client
    # asks, since that of the installation is to know the kind still.
    other = KubeClient(EAST, sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    eventually("the kind is not served", lambda: other.resource(WIDGET) is None)
    other.close()
    # The first finds out that the kind is served no more; the three behind it have to agree.
    for _ in range(4):
        resync_east(fleet)

    assert there(kube) == []
    assert list(fleet.records.matches.of(EAST)) == []
