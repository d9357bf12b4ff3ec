"""Server-side apply to just what is meant, and how to get past two kinds of API servers.

One life of an object is meant by its uid, which an API server takes for a change of it wherever
another is there. Where none is to be there it is given a resourceVersion that none can have: what
is new has no use for it. By both one version of a life is meant, where somebody else who may write
it, too, might do so just now.

Some servers refuse either though just that is there which is meant: up to 1.22 of a new Service,
and API servers behind an APIService, which keep their objects in ways of their own. So who is
refused looks, and tries once more without what was refused:

    apply, where none is ─► refused ─► GET: none is there  ─► apply, wherever
                                       GET: one is there   ─► 409, whatever it was refused with
                                       GET: who can tell?  ─► refused, as before

Only there may what somebody makes between the read and the second try be written over. Of a kind
that was refused so, and then taken, the next new object is looked for at once.

Up to 1.20 an apply that drops the last key of a map of a custom resource leaves `null` where the
map was, and is refused with `must be of type object: "null"`. Only keys of ours were in that map
(another's would have kept it alive), so that it is taken out whole. The API server would still
make a `null` of what it remembers as applied by us and finds gone; that memory goes too.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, NamedTuple

from bellhop.adapters.kube.errors import Call, Refusal
from bellhop.adapters.kube.transport import Request, Sends
from bellhop.model.identity import MANAGER
from bellhop.ports.kube import Manifest

_APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_CLEARINGS = 3
_UNPROCESSABLE = 422
_NO_VERSION = "1"
"""A resourceVersion that no object has: etcd counts from one, before anything is written."""
_CONDITIONS = ("uid", "resourceVersion")
_DOUBTED = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.INTERNAL_SERVER_ERROR,
    }
)
"""With what servers refuse a condition that they cannot take, beside ones that do not hold."""
_LEFT_NULL = 'must be of type object: "null"'
# Written by the API server alone: refused in an apply, or turning it into an optimistic write.
_STRIPPED = {"managedFields", "resourceVersion", "uid", "creationTimestamp"}

_SOME = "unknown"
_ANOTHER = Refusal(HTTPStatus.CONFLICT, "Conflict", "what is there is not what was known of it")

Path = list[str]


class Life(NamedTuple):
    """One life of an object, in one version; both are empty where none is there."""

    uid: str = ""
    version: str = ""


Doubted = set[tuple[str, str]]
"""The kinds of which a server refused a new object for its condition alone, by API version."""


def apply(
    transport: Sends, path: str, body: Manifest, call: Call, doubted: Doubted, *, dry_run: bool
) -> Any:
    """Send one apply to the object's `path`; return the object, or the `Refusal`.

    What it learns of the server is added to `doubted`.
    """
    answer, body = _to_one_life(transport, path, body, call, doubted, dry_run=dry_run)
    for _ in range(_CLEARINGS):
        fields = _left_null(answer) if isinstance(answer, Refusal) else []
        if not fields:
            break
        live = transport.send(Request("GET", path), call)
        paths = _paths(live, fields) if _is_clearable(live) else []
        if not paths:
            break
        if dry_run:
            return _preview(transport, path, body, call, live=live, paths=paths)
        query = {"fieldManager": MANAGER}
        cleared = transport.ask(Request("PATCH", path, query, _clearing(live, paths), MERGE), call)
        if isinstance(cleared, Refusal):
            break
        answer = _send(transport, path, body, call, dry_run=False)
    return answer


def _to_one_life(
    transport: Sends, path: str, body: Manifest, call: Call, doubted: Doubted, *, dry_run: bool
) -> tuple[Any, Manifest]:
    """Apply to the life that is meant; return the answer, and what was sent for it."""
    kind = str(body.get("apiVersion")), str(body.get("kind"))
    is_new = body["metadata"].get("resourceVersion") == _NO_VERSION
    refusal = None
    if not (is_new and kind in doubted):
        answer = refusal = _send(transport, path, body, call, dry_run=dry_run)
        if not isinstance(refusal, Refusal) or not _may_be_conditional(refusal, body):
            return answer, body
    there = _look(transport, path, body, call)
    if isinstance(there, Refusal):
        return refusal or _send(transport, path, body, call, dry_run=dry_run), body
    if not _is_meant(there, body["metadata"]):
        return _ANOTHER, body
    body = {**body, "metadata": _without(body["metadata"], _CONDITIONS)}
    answer = _send(transport, path, body, call, dry_run=dry_run)
    if refusal and "resourceVersion" in refusal.message and not isinstance(answer, Refusal):
        # In so many words: who stumbled once for another reason can take the next condition.
        doubted.add(kind)
    return answer, body


def applicable(manifest: Manifest, namespace: str, uid: str | None, version: str = "") -> Manifest:
    """Copy a manifest without what only the API server writes, in the namespace it goes to.

    It is for the life of the object that has this `uid`; for none that is there if it is empty. Of
    a life it is for this `version`, or for any.
    """
    metadata = _without(manifest.get("metadata") or {}, _STRIPPED)
    metadata.pop("namespace", None)
    if namespace:
        metadata["namespace"] = namespace
    if uid is not None:
        metadata |= {"uid": uid} if uid else {"resourceVersion": _NO_VERSION}
        metadata |= {"resourceVersion": version} if uid and version else {}
    return {**manifest, "metadata": metadata}


def _send(transport: Sends, path: str, body: Manifest, call: Call, *, dry_run: bool) -> Any:
    query = {"fieldManager": MANAGER, "force": "true"}
    query |= {"dryRun": "All"} if dry_run else {}
    return transport.ask(Request("PATCH", path, query, body, _APPLY), call)


def _may_be_conditional(refusal: Refusal, body: Manifest) -> bool:
    """Say whether a refusal may be about the condition, and not about what is written."""
    if not any(body["metadata"].get(each) for each in _CONDITIONS):
        return False
    fields = {str(cause["field"]) for cause in refusal.causes() if cause.get("field")}
    if fields and fields.isdisjoint(f"metadata.{each}" for each in _CONDITIONS):
        return False
    lacks_namespace = refusal.details.get("kind") == "namespaces"
    return refusal.code in _DOUBTED and not (
        refusal.code == HTTPStatus.NOT_FOUND and lacks_namespace
    )


def _look(transport: Sends, path: str, body: Manifest, call: Call) -> Life | Refusal:
    """Read which life is there, in which version; the `Refusal` if nobody can tell."""
    live = transport.ask(Request("GET", path), call)
    if not isinstance(live, Refusal):
        metadata = live.get("metadata") if isinstance(live, dict) else None
        known = metadata if isinstance(metadata, dict) else {}
        return Life(str(known.get("uid") or _SOME), str(known.get("resourceVersion")))
    plural, name = path.split("/")[-2], str(body["metadata"].get("name"))
    return Life() if live.names(plural, str(body.get("kind")), name) else live


def _is_meant(there: Life, metadata: Manifest) -> bool:
    version = metadata.get("resourceVersion", _NO_VERSION)
    return there.uid == (metadata.get("uid") or "") and version in {_NO_VERSION, there.version}


def _without(metadata: Manifest, fields: Collection[str]) -> Manifest:
    return {key: value for key, value in metadata.items() if key not in fields}


def _left_null(refusal: Refusal) -> list[str]:
    """Return the fields that the defect left null; none if anything else is wrong as well."""
    causes = refusal.causes() if refusal.code == _UNPROCESSABLE else []
    if not all(str(cause.get("message", "")).endswith(_LEFT_NULL) for cause in causes):
        return []
    return [str(cause["field"]) for cause in causes if cause.get("field")]


def _is_clearable(live: Any) -> bool:
    """Say if it has what an API server writes in every object."""
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


def _clearing(live: Manifest, paths: list[Path]) -> Manifest:
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


def _preview(
    transport: Sends,
    path: str,
    body: Manifest,
    call: Call,
    *,
    live: Manifest,
    paths: list[Path],
) -> Any:
    """Dry-run the apply with those maps as they are, then show them as they would be."""
    padded = copy.deepcopy(body)
    for field in paths:
        _put(padded, field, _at(live, field))
    answer = _send(transport, path, padded, call, dry_run=True)
    if not isinstance(answer, Refusal):
        for field in paths:
            _drop(answer, field)
            wanted = _at(body, field)
            if wanted is not None:
                _put(answer, field, wanted)
    return answer


def _at(tree: Any, path: Path) -> Any:
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
