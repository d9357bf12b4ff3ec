"""The objects of a Sveltos management cluster, from files or from its API server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from bellhop.core.gvk import GVK
from bellhop.core.names import is_template
from bellhop.documents.document import Document
from bellhop.ports.kube import Kube

HOLDERS = ("ConfigMap", "Secret")

_KIND_OF = {
    "ca": "Secret",
    "configMapGenerator": "ConfigMap",
    "credentials": "Secret",
    "key": "Secret",
    "secretGenerator": "Secret",
    "secretRef": "Secret",
}
"""Fields whose entries have no kind."""

_CHECKS = ("postDeleteChecks", "preDeleteChecks", "preDeployChecks", "validateHealths")
"""Fields whose `kind` is that of objects in the clusters."""

_FLUX = ("Bucket", "GitRepository", "OCIRepository")


class Reference(NamedTuple):
    """A ConfigMap or Secret; `namespace` and `name` may be templates.

    An empty namespace is that of each cluster.
    """

    kind: str
    namespace: str
    name: str
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace or '*'}/{self.name}"

    @property
    def is_template(self) -> bool:
        return is_template(self.namespace + self.name)

    @property
    def is_open(self) -> bool:
        """Say whether the name is a template without fixed text, which fits everything."""
        return not "".join(_split_template(self.name)).strip()

    def fits(self, namespace: str, name: str, namespaces: Collection[str]) -> bool:
        """Say whether the reference may mean an object; an empty namespace means `namespaces`."""
        near = _fits(self.namespace, namespace) if self.namespace else namespace in namespaces
        return near and _fits(self.name, name)


def list_references(manifest: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield the ConfigMaps and Secrets that a trigger, profile, request or check names."""
    own = ""
    if manifest.get("kind") == "Profile":
        own = str((manifest.get("metadata") or {}).get("namespace") or "default")
    for field, entry in _list_mappings("", manifest.get("spec")):
        kind, name = _KIND_OF.get(field, entry.get("kind")), entry.get("name")
        if field in _CHECKS or kind not in HOLDERS or not isinstance(name, str) or not name:
            continue
        namespace = own or str(entry.get("namespace") or "")
        yield Reference(str(kind), namespace, name, bool(entry.get("optional")))


def needs_hub(manifest: Mapping[str, Any]) -> bool:
    """Say whether an object deploys to the management cluster, or reads other kinds from it."""
    return any(
        entry.get("deploymentType") == "Local"
        or entry.get("kind") in _FLUX
        or (field == "resource" and entry.get("kind") not in HOLDERS)
        for field, entry in _list_mappings("", manifest.get("spec"))
    )


def _list_mappings(field: str, data: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each mapping of a tree with its field; entries of a list have the list's field."""
    if isinstance(data, list):
        for entry in data:
            yield from _list_mappings(field, entry)
    elif isinstance(data, dict) and field != "target":
        yield field, data
        for name, value in data.items():
            yield from _list_mappings(str(name), value)


def _split_template(template: str) -> list[str]:
    """Return the texts before, between and after the actions of a template."""
    parts, at = [], 0
    while (start := template.find("{{", at)) >= 0 and (end := template.find("}}", start + 2)) >= 0:
        parts.append(template[at:start])
        at = end + 2
    return [*parts, template[at:]]


def _fits(pattern: str, text: str) -> bool:
    """Say whether a template may be rendered as a text; each action may write anything."""
    first, *rest = _split_template(pattern)
    if not rest:
        return text == first
    *middle, last = rest
    at = len(first)
    if not (text.startswith(first) and text.endswith(last) and at + len(last) <= len(text)):
        return False
    for part in middle:
        # The first place is the best one: whatever fits later fits after it, too.
        found = text.find(part, at, len(text) - len(last))
        if found < 0:
            return False
        at = found + len(part)
    return True


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
"""The kinds that users write, which an API server is asked for."""


class Hub(Protocol):
    """A management cluster of Sveltos, as far as it is known."""

    def objects(self) -> Iterable[Document]:
        """Return all objects but ConfigMaps and Secrets, in the order they were read."""
        ...

    def find(self, reference: Reference, namespaces: Collection[str]) -> Iterable[Document]:
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
            kind, namespace, name = read_place(document.data)
            if kind in HOLDERS:
                self._holders[kind, namespace or "default", name] = document
            else:
                self._objects.append(document)

    def objects(self) -> Iterable[Document]:
        """Return all objects but ConfigMaps and Secrets."""
        return self._objects

    def find(self, reference: Reference, namespaces: Collection[str]) -> Iterator[Document]:
        """Yield the ConfigMaps or Secrets that may be meant."""
        for key in self._candidates(reference, namespaces):
            if key in self._holders:
                self._found.add(key)
                yield self._holders[key]

    def unread(self) -> Mapping[str, int]:
        """Count by kind the ConfigMaps and Secrets that nothing named."""
        left = [kind for kind, *_ in self._holders.keys() - self._found]
        return {kind: left.count(kind) for kind in HOLDERS if kind in left}

    def _candidates(
        self, reference: Reference, namespaces: Collection[str]
    ) -> Iterable[tuple[str, str, str]]:
        if not reference.is_template:
            places = [reference.namespace] if reference.namespace else namespaces
            return [(reference.kind, place, reference.name) for place in places]
        return [
            (kind, namespace, name)
            for kind, namespace, name in self._holders
            if kind == reference.kind and reference.fits(namespace, name, namespaces)
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
                yield from map(_make_document, self._kube.list(resource.gvk))

    def find(self, reference: Reference, namespaces: Collection[str]) -> Iterator[Document]:
        """Yield the ConfigMaps or Secrets that may be meant."""
        gvk = GVK("", "v1", reference.kind)
        if not reference.is_template:
            places = [reference.namespace] if reference.namespace else namespaces
            for place in places:
                found = self._kube.get(gvk, place, reference.name)
                if found is not None:
                    yield _make_document(found)
            return
        within = "" if is_template(reference.namespace) else reference.namespace
        for each in self._kube.list(gvk, namespace=within):
            metadata = each["metadata"]
            if reference.fits(metadata["namespace"], metadata["name"], namespaces):
                yield _make_document(each)

    def unread(self) -> Mapping[str, int]:
        """Return nothing: what nobody names is not read."""
        return {}


def read_place(data: Any) -> tuple[str, str, str]:
    """Return kind, namespace and name of an object; empty if it has none."""
    if not isinstance(data, dict):
        return "", "", ""
    metadata = data.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    parts = (data.get("kind"), named.get("namespace"), named.get("name"))
    kind, namespace, name = (each if isinstance(each, str) else "" for each in parts)
    return kind, namespace, name


def _make_document(manifest: dict[str, Any]) -> Document:
    kind, namespace, name = read_place(manifest)
    return Document(manifest, f"{kind} {'/'.join(filter(None, (namespace, name)))}")
