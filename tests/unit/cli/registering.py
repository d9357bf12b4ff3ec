"""Shared by tests of registration: the name of the cluster, and reads of its objects."""

from __future__ import annotations

import base64
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.core.gvk import GVK
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from infra.lab.cluster import Cluster
from tests.waiting import await_rights

KEY = "prod/eu-1"
SERVICE = "bellhop-forwarder.bellhop-system.svc"
INGEST = ("--ingest-url", "https://ingest.example:8443")
SECRET = GVK("", "v1", "Secret")
ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


def entries(kube: KubeClient) -> dict[str, str]:
    """Read the forwarder's Secret."""
    secret = kube.get(SECRET, NAMESPACE, NAME)
    assert secret is not None
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def limited(kube: KubeClient, source_cluster: Cluster, tmp_path: Path, rules: list[Any]) -> Path:
    """Make an account with some rights and no others; return its kubeconfig."""
    account = {"namespace": "default", "name": "limited"}
    former = kube.get(ROLE, "", "limited") or {"rules": []}
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    kube.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "limited"},
            "rules": rules,
        }
    )
    kube.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "limited"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "limited",
            },
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
    )
    granted = list_rights(rules)
    await_rights(kube, "default/limited", granted, list_rights(former["rules"]) - granted)
    document = source_cluster.kubeconfig()
    document["users"][0]["user"] = {"token": kube.token_request("default", "limited")}
    path = tmp_path / "limited.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def list_rights(rules: list[dict[str, Any]]) -> set[Right]:
    """List the rights that the rules of a role give."""
    return {
        Right(verb, group, *resource.split("/"))
        for each in rules or ()
        for group, resource, verb in product(each["apiGroups"], each["resources"], each["verbs"])
    }


def rules_of_the_how_to() -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole that the how-to gives."""
    page = Path(__file__).parents[3] / "docs/how-to/register-a-cluster.md"
    blocks = page.read_text().split("```yaml\n")[1:]
    documents = [
        document for block in blocks for document in yaml.safe_load_all(block.partition("```")[0])
    ]
    [role] = [each for each in documents if each["kind"] == "ClusterRole"]
    return list(role["rules"])
