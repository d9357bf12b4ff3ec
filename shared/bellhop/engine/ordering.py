"""In which order objects are applied: what others need comes first, and goes last.

Objects of one rank are a phase: they are applied, or removed, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

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

T = TypeVar("T")


def rank(key: Identity) -> int:
    """Return how late a kind is applied; those of one rank need nothing of each other."""
    return _RANK.get(key.kind, _MIDDLE)


def phases(items: Iterable[T], identity: Callable[[T], Identity]) -> Iterator[list[T]]:
    """Part objects that are in order, or in its reverse, into their phases."""
    return (list(phase) for _, phase in groupby(items, lambda each: rank(identity(each))))
