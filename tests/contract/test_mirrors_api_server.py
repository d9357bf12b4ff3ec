"""Statuses and mirrors on a real API server: all that is computed is stored, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.definitions import DEFINITIONS, make_definitions
from bellhop.configuration.installer import has_rules
from bellhop.configuration.mirrors import list_mirrors
from bellhop.configuration.status import make_status
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import UnreachableError
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.fakes.health import Watched, cluster_check, health_check
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
from tests.fakes.releases import charts
from tests.kube_fixtures import as_after_boot
from tests.unit.configuration.test_status import CLASSIFIER
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]
pytestmark = pytest.mark.oldest

TRIGGER = trigger(
    more="""patches: [{patch: "- {op: add, path: /metadata/labels/a, value: b}"}]
  validateHealths: [{name: there, featureID: Resources, group: "", version: v1, kind: Service,
    evaluateCEL: [{name: any, rule: "true"}]}]"""
)
TEMPLATE = "projectsveltos.io/template: ok"
RULES = (
    join(source(), TRIGGER, holder("made", config(FOR_EACH), annotations=INSTANTIATE)),
    join(profile(), holder("own", config("a"))),
    join(profile(name="dry", more="syncMode: DryRun"), holder("dry", config("d"))),
    join(
        profile(name="bad"),
        holder("bad", config("{{ .No }}"), annotations="projectsveltos.io/template: ok"),
    ),
    charts("charted"),
    charts("second"),
    charts("tried", more="syncMode: DryRun"),
    cluster_set(1),
    CLASSIFIER,
    health_check(),
    cluster_check(),
)
WRITTEN = {
    "EventSource": ["watched"],
    "EventTrigger": ["made"],
    "ClusterProfile": ["own", "dry", "bad", "charted", "second", "tried"],
    "ClusterSet": ["active"],
    "Classifier": ["new"],
    "HealthCheck": ["services"],
    "ClusterHealthCheck": ["production"],
}


@pytest.fixture(scope="module")
def kube(two_clusters: tuple[Cluster, Cluster]) -> Iterator[KubeClient]:
    """A client of a cluster that serves the definitions."""
    cluster = as_after_boot(two_clusters[0])
    client = KubeClient("mgmt/mgmt", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    for each in make_definitions(rules=has_rules(client.version())):
        client.apply(each)
    for each in DEFINITIONS:
        gvk = GVK(each.group, "v1beta1", each.kind)
        eventually(f"{each.kind} is served", lambda gvk=gvk: client.resource(gvk))
    for name in ("fleet", "projectsveltos"):
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield client
    client.close()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Watched]:
    """An installation in which something of each kind is deployed, and something of it failed."""
    fleet = Watched(tmp_path)
    fleet.repositories.put("web", "1.0.0")
    for name in ("east", "west"):
        fleet.register(name, env="production")
    fleet.access.clusters["fleet/west"].fail_with(UnreachableError("no route"), "apply")
    fleet.deploy(*RULES)
    ill = service("ill")
    ill["metadata"]["annotations"] = {"state": "Degraded"}
    fleet.write("east", ill)
    fleet.resync()
    fleet.wait(timedelta(minutes=1), times=3)
    yield fleet
    fleet.close()


def store(kube: KubeClient, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write an object and its status as the worker does; return what is stored."""
    uid = kube.apply(manifest)["metadata"]["uid"]
    if "status" in manifest:
        kube.apply_status(manifest, uid=uid)
    found = kube.get(*ObjectKey.of(manifest))
    assert found
    return found


def test_every_mirror_is_stored_as_it_is_made(kube: KubeClient, busy: Watched) -> None:
    """No field is pruned, and each has the type of its definition."""
    names = {**WRITTEN, "SveltosCluster": ["east", "west"]}
    here, kinds = busy.installation(), set()
    for kind, name in ((kind, name) for kind, named in names.items() for name in named):
        for manifest in list_mirrors(here, kind, "fleet" * (kind == "SveltosCluster"), name):
            found = store(kube, manifest)
            kinds.add(manifest["kind"])

            assert found.get("spec") == manifest.get("spec")
            assert found.get("status", {}) == manifest.get("status", {})
            assert found["metadata"]["labels"] == manifest["metadata"]["labels"]
    assert kinds == {
        "ClassifierReport",
        "ClusterConfiguration",
        "ClusterProfile",
        "ClusterReport",
        "ClusterSummary",
        "ConfigMap",
        "EventReport",
        "HealthCheckReport",
    }


def test_every_status_is_stored_as_it_is_made(kube: KubeClient, busy: Watched) -> None:
    """The users' objects keep their own fields, and a status that is shorter replaces a longer."""
    here = busy.installation()
    for document in yaml.safe_load_all(join(*RULES)):
        if document["kind"] not in WRITTEN:
            continue
        name = document["metadata"]["name"]
        status = make_status(here, document["kind"], "", name, generation=1)
        if status is None:
            continue
        uid = kube.apply(document)["metadata"]["uid"]
        kube.apply_status({**document, "status": status}, uid=uid)
        found = kube.get(*ObjectKey.of(document))

        assert found
        assert found["status"] == status
        assert found["spec"] == document["spec"]

        short = {"observedGeneration": 2}
        kube.apply_status({**document, "status": short}, uid=uid)
        found = kube.get(*ObjectKey.of(document))

        assert found
        assert found["status"] == short
