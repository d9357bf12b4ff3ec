"""Profiles with something Local, and the cluster that hosts it."""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.state.cluster import MANAGEMENT
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
TEMPLATE = "projectsveltos.io/template: ok"
EACH = "about-{{ .Cluster.metadata.name }}"


def local(more: str = "", *, namespace: str = "") -> str:
    """Return a profile with a Remote ref, named as it is, and a Local one."""
    refs = "[{kind: ConfigMap, name: own, namespace: default}"
    both = f"{refs}, {{kind: ConfigMap, name: here, namespace: default, deploymentType: Local}}]"
    return profile(more=more, namespace=namespace).replace(f"{refs}]", both)


def hosted(*objects: str) -> str:
    """Return a profile's add-ons: `own` to its clusters, and the Local ones as a template."""
    return join(holder("own", config("own")), holder("here", *objects, annotations=TEMPLATE))


def management(fleet: Fleet, **labels: str) -> FakeKube:
    """Register a cluster as `mgmt/mgmt`."""
    kube = fleet.access.clusters.setdefault(MANAGEMENT, FakeKube(MANAGEMENT))
    found = fleet.records.clusters.get("fleet/east")
    assert found
    fleet.declare.register(
        replace(found.value, namespace="mgmt", name="mgmt", labels=labels, uid="mgmt")
    )
    return kube


def names(kube: FakeKube) -> set[str]:
    """Name the ConfigMaps of a cluster."""
    return {each["metadata"]["name"] for each in kube.objects(CONFIG)}


def outcome(fleet: Fleet, cluster: str, name: str = "own") -> DeploymentStatus:
    """Return how a profile ended in a cluster."""
    kept = fleet.records.outcomes.get(cluster, name)
    assert kept
    return kept.value


def two(fleet: Fleet) -> tuple[FakeKube, FakeKube, FakeKube]:
    """Register two clusters, and the one that hosts."""
    east = fleet.register("east", env="production")
    west = fleet.register("west", env="production")
    return east, west, management(fleet)
