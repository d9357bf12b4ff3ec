"""In which order objects are applied and removed.

They are applied in the order in which they were written. Only definitions and namespaces are moved
to the front, and what an API server calls or forwards to is moved to the end: whoever writes one
of these later, or earlier, than what needs it means the same. They are removed by kind, in the
reverse of the order in which kinds need each other.

Neighbours of one rank are a phase: they are applied, or removed, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

from bellhop.core.gvk import Identity

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
_MOVED = {"Namespace": -2, "CustomResourceDefinition": -1} | dict.fromkeys(_LAST, 1)

T = TypeVar("T")


def rank(key: Identity) -> int:
    """Return how late a kind is needed; those of one rank need nothing of each other."""
    return _RANK.get(key.kind, _MIDDLE)


def moved(key: Identity) -> int:
    """Return where a kind is moved among objects in the order in which they were written.

    Below zero is to the front, above zero to the end. Objects with the same result stay in order.
    """
    return _MOVED.get(key.kind, 0)


def phases(items: Iterable[T], identity: Callable[[T], Identity]) -> Iterator[list[T]]:
    """Part objects that are in order into their phases: neighbours of one rank."""
    return (list(phase) for _, phase in groupby(items, lambda each: rank(identity(each))))
