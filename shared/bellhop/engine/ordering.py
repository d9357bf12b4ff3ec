"""In which order objects are applied: what others need comes first, and goes last."""

from __future__ import annotations

from bellhop.model.gvk import Identity

_FIRST = (
    "Namespace",
    "ResourceQuota",
    "LimitRange",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
)
_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService")
_MIDDLE = len(_FIRST)
_RANK = {kind: rank for rank, kind in enumerate(_FIRST)} | dict.fromkeys(_LAST, _MIDDLE + 1)


def rank(key: Identity) -> int:
    """Return how late a kind is applied; objects of one rank keep the order they came in."""
    return _RANK.get(key.kind, _MIDDLE)
