"""The kinds of the core group: no CustomResourceDefinition adds one, so another is a mistake.

A kind of another group may still come with its CRD, and an EventSource waits for that.
"""

from __future__ import annotations

from pydantic import ValidationInfo

from bellhop.api.fields import nearest
from bellhop.core.base import mistake

_CORE = (
    "Binding",
    "ComponentStatus",
    "ConfigMap",
    "Endpoints",
    "Event",
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ReplicationController",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
)
"""The kinds of v1, from the API reference of Kubernetes."""

_BUILT_IN = {
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "autoscaling": ("HorizontalPodAutoscaler",),
    "batch": ("CronJob", "Job"),
    "coordination.k8s.io": ("Lease",),
    "discovery.k8s.io": ("EndpointSlice",),
    "gateway.networking.k8s.io": ("Gateway", "GatewayClass", "HTTPRoute"),
    "networking.k8s.io": ("Ingress", "IngressClass", "NetworkPolicy"),
    "policy": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "storage.k8s.io": ("StorageClass",),
}
"""Other groups of Kubernetes, with the kinds that are often written without their group."""


WRITTEN_NOW = "written_now"
"""The entry of the context of a validation that is true of what users write, and not of records."""


def refuse_core_kind(group: str, version: str, kind: str, info: ValidationInfo) -> None:
    """Refuse a kind that the core group cannot have, where a user writes it.

    One of another group passes, as does a template.

    Raises:
        PydanticCustomError: it cannot.
    """
    if group or "{{" in kind or not (info.context or {}).get(WRITTEN_NOW):
        return
    if problem := _problem(version, kind):
        raise mistake(problem)


def _problem(version: str, kind: str) -> str:
    if kind in _CORE:
        return "" if version == "v1" else f"{kind} has the version 'v1', not {version[:40]!r}"
    said = f"the core group has no kind {kind[:60]!r}"
    for group, kinds in _BUILT_IN.items():
        if kind in kinds:
            return f"{said}; it is in the group {group!r}"
    return f"{said}{nearest(kind, _CORE) or '; name its group'}"
