"""Names of kinds and objects, in one spelling everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
"""What is kept of CloudEvents, as if it were a kind: the newest of one source and subject.

The namespace is the EventSource that takes it. No API server has such objects.
"""


class Identity(NamedTuple):
    """Which object in one cluster, in whatever version of its kind it is written.

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
    """Which object in one cluster; `namespace` is empty for cluster-scoped kinds."""

    gvk: GVK
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> ObjectKey:
        """Read the key of an object."""
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
