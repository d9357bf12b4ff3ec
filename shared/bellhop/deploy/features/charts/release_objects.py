"""The objects of a release, as the inventory has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from bellhop.core.gvk import GVK, Identity, ObjectKey, Resource
from bellhop.documents.document import read_documents
from bellhop.rendering.drift import our_fields
from bellhop.state.deployment import Held

_NAMESPACE, _NAME = "meta.helm.sh/release-namespace", "meta.helm.sh/release-name"
"""The annotations by which Helm knows what is of which release."""

_POLICY = "helm.sh/resource-policy"

MOST_OBJECTS = 2_000
"""Objects of one release that the inventory has; a chart may have more."""


def documents(manifest: str) -> Iterator[dict[str, Any]]:
    """Yield the objects that Helm wrote, those of a List one by one, as an API server reads them.

    Raises:
        InvalidError: what it wrote cannot be read.
    """
    for each in read_documents(manifest, source="the release", repeats=True):
        if isinstance(each.data, dict) and each.data.get("kind"):
            yield each.data


def objects_in(
    manifest: str, namespace: str, find: Callable[[GVK], Resource | None]
) -> Iterator[tuple[ObjectKey, dict[str, Any]]]:
    """Yield the objects of a release's manifest, each with its key.

    `find` says how a cluster serves a kind.

    Raises:
        InvalidError: what Helm wrote cannot be read.
    """
    for each in documents(manifest):
        key = ObjectKey.of(each)
        resource = find(key.gvk)
        namespaced = resource is None or resource.namespaced
        yield key._replace(namespace=(key.namespace or namespace) if namespaced else ""), each


def is_of(there: Mapping[str, Any], place: str) -> bool:
    """Say whether Helm has written that an object is of the release at a place."""
    annotations = (there.get("metadata") or {}).get("annotations") or {}
    return f"{annotations.get(_NAMESPACE)}/{annotations.get(_NAME)}" == place


def is_kept(manifest: Mapping[str, Any]) -> bool:
    """Say whether an object outlives its release, as its chart asks."""
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(_POLICY) == "keep")


def held_objects(
    keys: Iterable[ObjectKey], place: str, digest: str, ref: str, at: datetime
) -> dict[Identity, Held]:
    """Return objects as they are held, as parts of the release at a place."""
    found: dict[Identity, Held] = {}
    for key in keys:
        if len(found) >= MOST_OBJECTS:
            break
        found[key.identity] = Held(
            digest, ref, applied_at=at, version=key.gvk.version, part_of=place
        )
    return found


def is_untouched(there: Mapping[str, Any] | None, place: str) -> bool:
    """Say whether an object is there that no profile has written to, and no other release."""
    if there is None or our_fields(there):
        return False
    annotations = (there.get("metadata") or {}).get("annotations") or {}
    namespace, _, name = place.partition("/")
    found = (annotations.get(_NAMESPACE, namespace), annotations.get(_NAME, name))
    return found == (namespace, name)
