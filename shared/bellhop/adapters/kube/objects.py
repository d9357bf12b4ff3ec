"""Objects and pages in the answers of an API server, checked, and the paths that lead to them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bellhop.adapters.kube.discovery import group_path
from bellhop.adapters.kube.refusal import Call
from bellhop.core.digest import DEEPEST, exceeds_depth
from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import (
    InvalidError,
    UnreachableError,
)
from bellhop.ports.kube import Manifest, Page, Unread

_LONGEST_TOKEN = 4096

_LONGEST_NAME = 1024

_MANAGED = "managedFields"

TOO_DEEP = f"nested deeper than {DEEPEST} levels"


def read_key(manifest: Manifest, cluster: str) -> ObjectKey:
    metadata = manifest.get("metadata") or {}
    if isinstance(metadata, dict):
        key = ObjectKey.of(manifest)
        if key.gvk.kind and key.gvk.version and all(isinstance(part, str) for part in key[1:]):
            return key
    raise InvalidError(
        f"cannot apply an object on cluster '{cluster}': it needs `apiVersion`, `kind` and "
        "`metadata`, and in it names that are texts"
    )


def home_namespace(resource: Resource, namespace: str) -> str:
    return (namespace or "default") if resource.namespaced else ""


def collection_path(resource: Resource, namespace: str, call: Call) -> str:
    root = group_path(resource.gvk)
    if resource.namespaced and namespace:
        root += f"/namespaces/{_path_segment(namespace, call)}"
    return f"{root}/{resource.plural}"


def object_path(resource: Resource, call: Call, name: str) -> str:
    if not name:
        raise InvalidError(f"{call}: it has no name")
    collection = collection_path(resource, home_namespace(resource, call.namespace), call)
    return f"{collection}/{_path_segment(name, call)}"


def _path_segment(name: str, call: Call) -> str:
    # What API servers themselves refuse; here it would lead to another path.
    if name in {".", ".."} or "/" in name or "%" in name:
        raise InvalidError(f"{call}: a name may not be '.' or '..', nor contain '/' or '%'")
    try:
        segment = quote(name, safe="")
    except UnicodeEncodeError:
        segment = ""
    if not segment or len(segment) > _LONGEST_NAME:
        raise InvalidError(f"{call}: a name is too long, or holds half of a character")
    return segment


def expect_object(answer: Any, call: Call) -> Manifest:
    if not _is_object(answer):
        raise UnreachableError(f"{call}: the answer is not an object")
    found: Manifest = answer
    return found


def expect_status(answer: Any, call: Call) -> Manifest:
    status = expect_object(answer, call).get("status")
    return status if isinstance(status, dict) else {}


def _is_object(answer: Any) -> bool:
    """Say if it has the shape on which everything that reads objects relies."""
    if not isinstance(answer, dict):
        return False
    metadata = answer.get("metadata", {})
    return isinstance(metadata, dict) and all(
        isinstance(metadata.get(key, ""), str)
        for key in ("name", "namespace", "uid", "resourceVersion")
    )


def read_page(answer: Any, gvk: GVK, call: Call, large: str = "") -> Page:
    """Read a page; if its object is too `large`, it has only the metadata."""
    answer = answer if isinstance(answer, dict) else {}
    metadata = answer.get("metadata") or {}
    after = (metadata.get("continue") or "") if isinstance(metadata, dict) else None
    items = answer.get("items", "none") or []
    if not isinstance(items, list) or not isinstance(after, str):
        raise UnreachableError(f"{call}: the answer is not a list")
    if len(after) > _LONGEST_TOKEN:
        raise UnreachableError(f"{call}: the answer's token for the next page is too long")
    if not all(_is_object(item) and item.get("metadata", {}).get("name") for item in items):
        raise UnreachableError(f"{call}: the answer lists something that is not an object")
    filled = [{**item, "apiVersion": gvk.api_version, "kind": gvk.kind} for item in items]
    if large:
        return Page([], after, tuple(Unread(ObjectKey.of(each), large) for each in filled))
    unread: tuple[Unread, ...] = ()
    if exceeds_depth(list(map(_drop_managed_fields, filled)), DEEPEST + 1):
        unread = tuple(Unread(ObjectKey.of(each), TOO_DEEP) for each in filled if is_too_deep(each))
        filled = [each for each in filled if not is_too_deep(each)]
    return Page(filled, after, unread)


def is_too_deep(manifest: Manifest) -> bool:
    return exceeds_depth(_drop_managed_fields(manifest), DEEPEST)


def _drop_managed_fields(manifest: Manifest) -> Manifest:
    """Return an object without managedFields, which nest as it does and are not kept."""
    metadata = manifest.get("metadata") or {}
    rest = {key: value for key, value in metadata.items() if key != _MANAGED}
    return {**manifest, "metadata": rest}
