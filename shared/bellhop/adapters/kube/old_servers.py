"""Workarounds for API servers up to Kubernetes 1.20; with the last of them this module goes.

Up to 1.20 an apply that drops the last key of a map of a custom resource leaves `null` where the
map was, and is refused with `must be of type object: "null"`. Only keys of ours were in that map
(another's would have kept it alive), so that it is taken out whole. The API server would still
make a `null` of fields that it remembers as applied by us and misses; that memory goes too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from bellhop.adapters.kube.refusal import Refusal
from bellhop.core.identity import MANAGER
from bellhop.ports.kube import Manifest

_CLEARINGS = 3
_UNPROCESSABLE = 422
_LEFT_NULL = 'must be of type object: "null"'

Path = list[str]


class Server(NamedTuple):
    """The requests for one object; each returns the object, or a Refusal."""

    read: Callable[[], Any]
    merge: Callable[[Manifest], Any]
    apply: Callable[[Manifest], Any]


def is_refused_manifest(refusal: Refusal) -> bool:
    """Return whether a 500 is a refusal: up to 1.20 a wrong field of a manifest gets one."""
    return refusal.message.startswith(("failed to create typed patch object", "failed to convert"))


def with_protocols(manifest: Manifest) -> Manifest:
    """Return a manifest with the protocol of each port of a Service, which 1.20 refuses to guess.

    The protocol is a part of the key by which ports are merged, and its default came with 1.21.
    """
    spec = manifest.get("spec")
    ports = spec.get("ports") if isinstance(spec, dict) else None
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "Service"):
        return manifest
    if not isinstance(spec, dict) or not isinstance(ports, list):
        return manifest
    whole = [{"protocol": "TCP", **each} if isinstance(each, dict) else each for each in ports]
    return {**manifest, "spec": {**spec, "ports": whole}}


def clear_nulls(server: Server, answer: Any, body: Manifest, *, dry_run: bool) -> Any:
    """Return the answer to an apply, made again without the maps that it left null.

    Any other answer is returned as it is.
    """
    for _ in range(_CLEARINGS):
        fields = _find_nulls(answer) if isinstance(answer, Refusal) else []
        if not fields:
            break
        live = server.read()
        paths = _paths(live, fields) if is_writable(live) else []
        if not paths:
            break
        if dry_run:
            return _preview(server, body, live=live, paths=paths)
        if isinstance(server.merge(_clear(live, paths)), Refusal):
            break
        answer = server.apply(body)
    return answer


def _find_nulls(refusal: Refusal) -> list[str]:
    """Return the fields that the defect left null; none if anything else is wrong as well."""
    causes = refusal.causes() if refusal.code == _UNPROCESSABLE else []
    if not all(str(cause.get("message", "")).endswith(_LEFT_NULL) for cause in causes):
        return []
    return [str(cause["field"]) for cause in causes if cause.get("field")]


def is_writable(live: Any) -> bool:
    """Say if it is an object with its version and its managers, as an API server writes them."""
    metadata = live.get("metadata") if isinstance(live, dict) else None
    if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
        return False
    owners = metadata.get("managedFields") or []
    return isinstance(owners, list) and all(isinstance(owner, dict) for owner in owners)


def _paths(live: Manifest, fields: list[str]) -> list[Path]:
    """Find the fields; none if one is not a map of maps, as below a list: no merge reaches it."""
    paths = [_path(live, field) for field in fields]
    return [path for path in paths if path] if all(paths) else []


def _path(live: Any, field: str) -> Path:
    """Split a dotted field name by the keys that are there, which may have dots of their own."""
    if not isinstance(live, dict):
        return []
    if isinstance(live.get(field), dict):
        return [field]
    for key, value in live.items():
        below = _path(value, field[len(key) + 1 :]) if field.startswith(f"{key}.") else []
        if below:
            return [key, *below]
    return []


def _clear(live: Manifest, paths: list[Path]) -> Manifest:
    """Make the merge patch that takes these maps out of exactly this state of the object."""
    metadata = live["metadata"]
    owners = copy.deepcopy(metadata.get("managedFields") or [])
    patch: Manifest = {}
    for path in paths:
        _put(patch, path, None)
        for owner in owners:
            if owner.get("manager") == MANAGER and owner.get("operation") == "Apply":
                _drop(owner.get("fieldsV1") or {}, [f"f:{key}" for key in path])
    patch["metadata"] = {"resourceVersion": metadata["resourceVersion"], "managedFields": owners}
    return patch


def _preview(server: Server, body: Manifest, *, live: Manifest, paths: list[Path]) -> Any:
    """Dry-run the apply with those maps as they are, then show them as they would be."""
    padded = copy.deepcopy(body)
    for field in paths:
        _put(padded, field, _get(live, field))
    answer = server.apply(padded)
    if not isinstance(answer, Refusal):
        for field in paths:
            _drop(answer, field)
            desired = _get(body, field)
            if desired is not None:
                _put(answer, field, desired)
    return answer


def _get(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _put(tree: Manifest, path: Path, value: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    tree[path[-1]] = value


def _drop(tree: Manifest, path: Path) -> None:
    for key in path[:-1]:
        tree = (tree.get(key) if isinstance(tree, dict) else None) or {}
    if isinstance(tree, dict):
        tree.pop(path[-1], None)
