"""Where Sveltos' objects are read from: files of `kubectl get -o yaml`, or its API server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from bellhop.cli.sveltos.references import HOLDERS, Reference
from bellhop.core.gvk import GVK
from bellhop.core.names import is_template
from bellhop.documents.document import Document
from bellhop.ports.kube import Kube

CLUSTER_API = "cluster.x-k8s.io"
SVELTOS = "projectsveltos.io"

_LIB, _CONFIG = f"lib.{SVELTOS}", f"config.{SVELTOS}"
_KINDS = (
    (_LIB, "SveltosCluster"),
    (CLUSTER_API, "Cluster"),
    (_LIB, "ClusterSet"),
    (_LIB, "Set"),
    (_LIB, "Classifier"),
    (_LIB, "ManagementClusterClassifier"),
    (_LIB, "EventSource"),
    (_LIB, "EventTrigger"),
    (_CONFIG, "ClusterProfile"),
    (_CONFIG, "Profile"),
    (_CONFIG, "ClusterPromotion"),
    (_LIB, "RoleRequest"),
    (_LIB, "HealthCheck"),
    (_LIB, "ClusterHealthCheck"),
)
"""What an API server is asked for: each kind that users write."""


class Hub(Protocol):
    """A management cluster of Sveltos, as far as it is known."""

    def objects(self) -> Iterable[Document]:
        """Return all objects but ConfigMaps and Secrets, in the order they were read."""
        ...

    def find(self, wanted: Reference, namespaces: Collection[str]) -> Iterable[Document]:
        """Return the ConfigMaps or Secrets that may be meant.

        Without a namespace of its own the reference means each of `namespaces`.
        """
        ...

    def unread(self) -> Mapping[str, int]:
        """Count by kind the ConfigMaps and Secrets that are there, and that nothing named."""
        ...


class FilesHub:
    """A management cluster as files have it; of an object that comes twice, the last one counts."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._objects: list[Document] = []
        self._holders: dict[tuple[str, str, str], Document] = {}
        self._found: set[tuple[str, str, str]] = set()
        for document in documents:
            kind, namespace, name = place_of(document.data)
            if kind in HOLDERS:
                self._holders[kind, namespace or "default", name] = document
            else:
                self._objects.append(document)

    def objects(self) -> Iterable[Document]:
        """Return all objects but ConfigMaps and Secrets."""
        return self._objects

    def find(self, wanted: Reference, namespaces: Collection[str]) -> Iterator[Document]:
        """Yield the ConfigMaps or Secrets that may be meant."""
        for key in self._candidates(wanted, namespaces):
            if key in self._holders:
                self._found.add(key)
                yield self._holders[key]

    def unread(self) -> Mapping[str, int]:
        """Count by kind the ConfigMaps and Secrets that nothing named."""
        left = [kind for kind, *_ in self._holders.keys() - self._found]
        return {kind: left.count(kind) for kind in HOLDERS if kind in left}

    def _candidates(
        self, wanted: Reference, namespaces: Collection[str]
    ) -> Iterable[tuple[str, str, str]]:
        if not wanted.is_template:
            places = [wanted.namespace] if wanted.namespace else namespaces
            return [(wanted.kind, place, wanted.name) for place in places]
        return [
            (kind, namespace, name)
            for kind, namespace, name in self._holders
            if kind == wanted.kind and wanted.fits(namespace, name, namespaces)
        ]


class ClusterHub:
    """A management cluster that answers; of its Secrets only those that are named are read."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    def objects(self) -> Iterator[Document]:
        """Yield the objects that users of Sveltos write."""
        for group, kind in _KINDS:
            resource = self._kube.served(group, kind)
            if resource is not None:
                yield from map(_document, self._kube.list(resource.gvk))

    def find(self, wanted: Reference, namespaces: Collection[str]) -> Iterator[Document]:
        """Yield the ConfigMaps or Secrets that may be meant."""
        gvk = GVK("", "v1", wanted.kind)
        if not wanted.is_template:
            places = [wanted.namespace] if wanted.namespace else namespaces
            for place in places:
                found = self._kube.get(gvk, place, wanted.name)
                if found is not None:
                    yield _document(found)
            return
        within = "" if is_template(wanted.namespace) else wanted.namespace
        for each in self._kube.list(gvk, namespace=within):
            metadata = each["metadata"]
            if wanted.fits(metadata["namespace"], metadata["name"], namespaces):
                yield _document(each)

    def unread(self) -> Mapping[str, int]:
        """Return nothing: what nobody names is not read."""
        return {}


def place_of(data: Any) -> tuple[str, str, str]:
    """Return kind, namespace and name of an object; empty where it does not say them."""
    if not isinstance(data, dict):
        return "", "", ""
    metadata = data.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    parts = (data.get("kind"), named.get("namespace"), named.get("name"))
    kind, namespace, name = (each if isinstance(each, str) else "" for each in parts)
    return kind, namespace, name


def _document(manifest: dict[str, Any]) -> Document:
    kind, namespace, name = place_of(manifest)
    return Document(manifest, f"{kind} {'/'.join(filter(None, (namespace, name)))}")
