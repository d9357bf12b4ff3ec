"""The objects of a chart are held to `bellhop.dev/allow` as any other objects are."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK, Resource
from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG, FakeKube

DEFINITION = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
GADGET = GVK("example.org", "v1", "Gadget")
RELEASE = "Release.helm.sh in apps; ConfigMap in apps"


def profile(allow: str) -> str:
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: p, annotations: {{bellhop.dev/allow: "{allow}"}}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  helmCharts:
  - repositoryURL: https://charts.example.com
    chartName: web
    releaseName: web
    releaseNamespace: apps
    values: "replicas: one"
"""


def manifest(kind: str, api_version: str = "v1", namespace: str = "") -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **place}}


def failure(fleet: Fleet) -> tuple[str, str]:
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    return outcome.reason, outcome.message


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        pytest.param(
            manifest("ClusterRoleBinding", "rbac.authorization.k8s.io/v1"),
            "may not deploy a ClusterRoleBinding.rbac.authorization.k8s.io, which",
            id="a kind that no entry names",
        ),
        pytest.param(
            manifest("ConfigMap", namespace="kube-system"),
            "may not deploy a ConfigMap in namespace 'kube-system', which",
            id="another namespace",
        ),
        pytest.param(
            {**manifest("PodList"), "items": [manifest("Secret")]},
            "may not deploy a Secret, which",
            id="an item of a list",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {"name": "x"}}]},
            "may not deploy a Secret, which",
            id="an item that has the kind of its list",
        ),
    ],
)
def test_an_object_that_is_not_allowed_blocks_the_release(
    fleet: Fleet, east: FakeKube, hook: dict[str, Any], why: str
) -> None:
    """Hooks count as any object of the chart, and lists as what they hold."""
    fleet.charts.hooks = [hook]
    fleet.deploy(profile(RELEASE))

    assert east.objects(CONFIG) == []
    reason, message = failure(fleet)
    assert reason == "Denied"
    assert f"ClusterProfile 'p' {why} the chart has" in message


def test_a_release_of_allowed_objects_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """An object without a namespace is in the one of the release."""
    fleet.charts.hooks = [manifest("ConfigMap")]
    fleet.deploy(profile(RELEASE))

    assert failure(fleet) == ("", "")
    assert len(east.objects(CONFIG)) == 1


def test_a_stricter_annotation_counts_for_a_release_that_is_there(
    fleet: Fleet, east: FakeKube
) -> None:
    """Chart and values are as before, and the profile fails; what was deployed stays."""
    fleet.deploy(profile(RELEASE))
    fleet.deploy(profile("Release.helm.sh in apps; Secret in apps"))

    assert failure(fleet)[0] == "Denied"
    assert len(east.objects(CONFIG)) == 1


@pytest.mark.parametrize(
    ("entry", "namespaced", "allowed"),
    [
        ("Gadget.example.org in *", True, True),
        ("Gadget.example.org in *", False, False),
        ("Gadget.example.org cluster-wide", False, True),
        ("Gadget.example.org cluster-wide", True, False),
    ],
)
@pytest.mark.parametrize("served", [True, False], ids=["served", "defined by the chart"])
def test_the_scope_of_a_kind_is_that_of_the_cluster(
    fleet: Fleet, east: FakeKube, entry: str, *, namespaced: bool, allowed: bool, served: bool
) -> None:
    """A namespace in a manifest makes no object namespaced, nor does its absence the contrary."""
    if served:
        east.serve(Resource(GADGET, "gadgets", namespaced))
    scope = "Namespaced" if namespaced else "Cluster"
    fleet.charts.crds = f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gadgets.example.org}}
spec: {{group: example.org, scope: {scope}, names: {{kind: Gadget}}}}
"""
    fleet.charts.hooks = [manifest("Gadget", "example.org/v1", "apps")]
    fleet.deploy(
        profile(f"{RELEASE}; {entry}; CustomResourceDefinition.apiextensions.k8s.io cluster-wide")
    )

    assert (failure(fleet)[0] == "") == allowed


def test_a_definition_that_is_not_allowed_is_refused_before_helm_is_called(
    fleet: Fleet, east: FakeKube
) -> None:
    """Helm would install it before it renders the chart."""
    fleet.charts.crds = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    fleet.deploy(profile(RELEASE))

    assert fleet.charts.deployed == []
    assert "which the chart has" in failure(fleet)[1]
    assert failure(fleet)[1].endswith(
        "allow it there, change the chart's values, or leave out its folder crds: set"
        " options.skipCRDs, and not options.upgradeOptions.upgradeCRDs"
    )

    fleet.deploy(profile(RELEASE) + "    options: {skipCRDs: true}\n")
    assert failure(fleet) == ("", "")
    assert len(east.objects(CONFIG)) == 1


def test_a_definition_that_an_upgrade_applies_is_refused_too(fleet: Fleet, east: FakeKube) -> None:
    """By upgradeCRDs it is applied although skipCRDs keeps Helm from installing it."""
    fleet.deploy(profile(RELEASE))
    fleet.charts.crds = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec: {group: example.org, scope: Cluster, names: {kind: Gadget}}
"""
    options = "{skipCRDs: true, upgradeOptions: {upgradeCRDs: true}}"
    fleet.deploy(profile(RELEASE) + f"    options: {options}\n")

    assert east.objects(DEFINITION) == []
    assert failure(fleet)[0] == "Denied"

    fleet.deploy(profile(RELEASE) + "    options: {skipCRDs: true}\n")
    assert failure(fleet) == ("", "")
