"""Objects that scenarios create and have deployed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import yaml

from bellhop.core.gvk import GVK

Manifest = dict[str, Any]
LIB, CONFIG = "lib.projectsveltos.io/v1beta1", "config.projectsveltos.io/v1beta1"


def draw() -> str:
    """Return a random name."""
    return f"a{uuid.uuid4().hex[:10]}"


def number(texts: Sequence[str]) -> dict[str, str]:
    """Return texts as suites name them in a ConfigMap."""
    return {f"policy{index}.yaml": text for index, text in enumerate(texts)}


def refer(place: tuple[str, str], kind: str = "ConfigMap", **more: Any) -> Manifest:
    """Return a policyRef."""
    return {"kind": kind, "namespace": place[0], "name": place[1], **more}


def config_map(name: str, namespace: str = "default", **data: str) -> str:
    """Return a ConfigMap to deploy."""
    metadata = {"name": name, "namespace": namespace}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    )


def namespace_text(name: str, **labels: str) -> str:
    """Return a Namespace to deploy."""
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def find_gvk(kind: str) -> GVK:
    """Return the kind of objects by its name."""
    if kind in (
        "ClusterProfile",
        "Profile",
        "ClusterSummary",
        "ClusterConfiguration",
        "ClusterReport",
    ):
        return GVK.parse(CONFIG, kind)
    if kind in ("EventSource", "EventTrigger", "EventReport", "ClusterSet", "SveltosCluster"):
        return GVK.parse(LIB, kind)
    groups = {
        "Deployment": "apps",
        "NetworkPolicy": "networking.k8s.io",
        "Ingress": "networking.k8s.io",
        "Job": "batch",
    }
    if kind in ("ClusterRole", "ClusterRoleBinding", "Role"):
        return GVK("rbac.authorization.k8s.io", "v1", kind)
    return GVK(groups.get(kind, ""), "v1", kind)


def write_object(kind: str, name: str, namespace: str = "", api: str = "v1", **more: object) -> str:
    """Return an object to deploy."""
    metadata: Manifest = {"name": name, **({"namespace": namespace} if namespace else {})}
    if "labels" in more:
        metadata["labels"] = more.pop("labels")
    return yaml.safe_dump({"apiVersion": api, "kind": kind, "metadata": metadata, **more})


def write_role(name: str, *verbs: str) -> str:
    """Return a ClusterRole."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}
    return write_object("ClusterRole", name, api="rbac.authorization.k8s.io/v1", rules=[rule])


def write_pod(name: str) -> str:
    """Return a Pod, which nobody runs."""
    return write_object(
        "Pod", name, "default", spec={"containers": [{"name": "main", "image": "nginx"}]}
    )


def write_deployment(name: str, namespace: str, **spec: object) -> str:
    """Return a Deployment."""
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.14.2"}]},
    }
    whole = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template, **spec}
    return write_object("Deployment", name, namespace, api="apps/v1", spec=whole)


def write_service(name: str, namespace: str) -> str:
    """Return a Service."""
    spec = {"selector": {"app": "main"}, "ports": [{"name": "http", "port": 80}]}
    return write_object("Service", name, namespace, spec=spec)
