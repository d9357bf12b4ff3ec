"""The kinds of the core group: no CustomResourceDefinition adds one, so another is a mistake.

Where a kind of another group is not served, its CRD may still come, and whoever asks for it waits.
"""

from __future__ import annotations

from bellhop.model.base import mistake
from bellhop.model.shape import nearest

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
    "networking.k8s.io": ("Ingress", "IngressClass", "NetworkPolicy"),
    "policy": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "storage.k8s.io": ("StorageClass",),
}
"""Where the kinds are that are often looked for in the core group."""


def refuse_core_kind(group: str, version: str, kind: str) -> None:
    """Refuse a kind that the core group cannot have; one of another group passes.

    Raises:
        PydanticCustomError: it cannot.
    """
    if problem := _problem(version, kind) if not group else "":
        raise mistake(problem)


def _problem(version: str, kind: str) -> str:
    if kind in _CORE:
        return "" if version == "v1" else f"{kind} has the version 'v1', not {version[:40]!r}"
    said = f"the core group has no kind {kind[:60]!r}"
    for group, kinds in _BUILT_IN.items():
        if kind in kinds:
            return f"{said}; it is in the group {group!r}"
    return f"{said}{nearest(kind, _CORE) or '; name its group'}"
