"""Roles and the admission policy for the configuration cluster, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.definitions import make_definitions
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.errors import DeniedError
from infra.lab.cluster import Cluster
from tests.waiting import eventually

pytest_plugins = ["tests.kube_fixtures"]

FOLDER = Path(__file__).parents[2] / "docs/examples/configuration-cluster"
PROFILE = GVK("config.projectsveltos.io", "v1beta1", "ClusterProfile")
SVELTOS_CLUSTER = GVK("lib.projectsveltos.io", "v1beta1", "SveltosCluster")
FIRST_WITH_POLICIES = 30


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """An administrator's client of a cluster with definitions, roles and two tenants."""
    kubeconfig = sanitise(source_cluster.kubeconfig(), reach=LOCAL)
    client = KubeClient("mgmt/mgmt", kubeconfig, reach=LOCAL)
    for each in make_definitions(rules=False):
        if each["spec"]["names"]["kind"] in ("ClusterProfile", "SveltosCluster"):
            client.apply(each)
    eventually("both kinds are served", lambda: _serves(client))
    for each in yaml.safe_load_all((FOLDER / "roles.yaml").read_text()):
        client.apply(each)
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for name, role in (
        ("ann", "author"),
        ("bob", "author"),
        ("eve", "viewer"),
        ("ada", "fleet-admin"),
    ):
        client.apply(_bind(name, role))
    yield client
    client.close()


def _serves(kube: KubeClient) -> bool:
    return all(kube.resource(each) for each in (PROFILE, SVELTOS_CLUSTER))


def _bind(account: str, role: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"bellhop-{account}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": f"bellhop-{role}"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "team", "name": account}],
    }


def _profile(name: str, account: str, tier: int = 100) -> dict[str, Any]:
    labels = {ACCOUNT_NAMESPACE: "team", ACCOUNT_NAME: account} if account else {}
    return {
        "apiVersion": PROFILE.api_version,
        "kind": PROFILE.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {"tier": tier},
    }


def _sveltos_cluster() -> dict[str, Any]:
    return {
        "apiVersion": SVELTOS_CLUSTER.api_version,
        "kind": SVELTOS_CLUSTER.kind,
        "metadata": {"namespace": "team", "name": "eu-1"},
        "spec": {},
    }


def _is_refused(kube: KubeClient, manifest: dict[str, Any]) -> bool:
    try:
        kube.apply(manifest)
    except DeniedError:
        return True
    return False


def test_each_role_may_write_its_kinds(kube: KubeClient) -> None:
    """A viewer none, an author profiles, and a fleet admin clusters as well."""
    eve, ann, ada = (kube.acting_as(f"team/{each}") for each in ("eve", "ann", "ada"))
    eventually("roles are in force", lambda: not _is_refused(ada, _sveltos_cluster()))
    eventually("roles are in force", lambda: not _is_refused(ann, _profile("mine", "ann")))

    assert [each["metadata"]["name"] for each in eve.list(PROFILE)] == ["mine"]
    assert _is_refused(eve, _profile("mine", "ann", tier=5))
    assert _is_refused(ann, _sveltos_cluster())
    assert not _is_refused(ada, _profile("mine", "ann", tier=5))


def test_a_tenant_writes_for_no_other_account(kube: KubeClient) -> None:
    """No object may be new, changed or deleted with other labels than the own."""
    if int(kube.version().split(".")[1]) < FIRST_WITH_POLICIES:
        pytest.skip("API servers before 1.30 have no admission policies in v1")
    for each in yaml.safe_load_all((FOLDER / "tenants.yaml").read_text()):
        kube.apply(each)
    ann, ada = kube.acting_as("team/ann"), kube.acting_as("team/ada")
    eventually("roles are in force", lambda: not _is_refused(ann, _profile("own", "ann")))
    eventually("the policy is in force", lambda: _is_refused(ann, _profile("first", "bob")))
    kube.apply(_profile("his", "bob"))
    eventually("roles are in force", lambda: not _is_refused(ann, _profile("mine", "ann")))

    assert not _is_refused(ann, _profile("mine", "ann", tier=5))
    assert _is_refused(ann, _profile("mine", "bob"))
    assert _is_refused(ann, _profile("mine", ""))
    assert _is_refused(ann, _profile("theirs", "bob"))
    assert _is_refused(ann, _profile("nobodys", ""))
    assert _is_refused(ann, _profile("his", "ann"))
    with pytest.raises(DeniedError, match="belongs to another account"):
        ann.remove(PROFILE, "", "his")
    eventually("roles are in force", lambda: not _is_refused(ada, _profile("his", "bob", tier=5)))
    ann.remove(PROFILE, "", "mine")
