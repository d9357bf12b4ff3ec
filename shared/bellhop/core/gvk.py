"""Kinds, names of objects in one spelling, and the order in which objects are applied.

Objects are applied in the order of the manifests. Only definitions and namespaces are moved to the
front, and webhook configurations and APIServices to the end, wherever a manifest has them. Objects
are removed by kind, in the reverse of the order in which kinds need each other.

Neighbours of one rank are a phase: they are applied, or removed, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct


class GVK(NamedTuple):
    """Group, version and kind; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> GVK:
        """Read apiVersion and kind of an object."""
        return cls.parse(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GVK:
        """Split an apiVersion: `v1` is the core group, `apps/v1` the group `apps`."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @property
    def api_version(self) -> str:
        """Join group and version as manifests have them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


CLOUD_EVENT = GVK("events.bellhop.dev", "v1", "CloudEvent")
"""The kind of stored CloudEvents: the newest of one source and subject.

The namespace is the EventSource that takes it. No API server has such objects.
"""


class Identity(NamedTuple):
    """The identity of an object in one cluster, the same for all versions of its kind.

    An API server keeps one object for all versions of a group's kind.
    """

    group: str
    kind: str
    namespace: str
    name: str

    def at(self, version: str) -> ObjectKey:
        """Return the key under which a version of the kind has the object."""
        return ObjectKey(GVK(self.group, version, self.kind), self.namespace, self.name)

    @classmethod
    def parse(cls, text: str) -> Identity:
        """Read back what `str` wrote: group/kind/namespace/name."""
        return cls(*text.split("/", 3))

    def __str__(self) -> str:
        return "/".join(self)


class ObjectKey(NamedTuple):
    """The key of an object in one cluster; `namespace` is empty for cluster-scoped kinds."""

    gvk: GVK
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> ObjectKey:
        metadata = manifest.get("metadata") or {}
        return cls(GVK.of(manifest), metadata.get("namespace") or "", metadata.get("name") or "")

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """Read back what `str` wrote: group/version/kind/namespace/name."""
        group, version, kind, namespace, name = text.split("/", 4)
        return cls(GVK(group, version, kind), namespace, name)

    @property
    def identity(self) -> Identity:
        """Say which object this is, without the version."""
        return Identity(self.gvk.group, self.gvk.kind, self.namespace, self.name)

    def __str__(self) -> str:
        return "/".join((*self.gvk, self.namespace, self.name))


class Resource(Struct, frozen=True):
    """How an API server serves a kind, from its discovery documents."""

    gvk: GVK
    plural: str
    namespaced: bool
    subresources: tuple[str, ...] = ()


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
