"""Server-side apply with preconditions, and a way around API servers that refuse these wrongly.

The uid in an apply is the precondition that just this object is there: an API server refuses to
change it. A resourceVersion that no object can have is the precondition that none is there, since
a new object does not need it. Both together name one version of one object, for objects that other
writers may change at the same time.

Some servers refuse a precondition that holds: up to 1.22 that of a new Service, and API servers
behind an APIService, which store their objects in ways of their own. So after a refusal the object
is read, and applied once more without the refused precondition:

    apply, where none is ─► refused ─► GET: none is there  ─► apply, wherever
                                       GET: one is there   ─► 409, whatever it was refused with
                                       GET: no answer      ─► refused, as before

Only there may an object that somebody creates between the read and the second try be overwritten.
After such a refusal, the next new object of that kind is read first.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Any, NamedTuple

from bellhop.adapters.kube.contradictions import resolve
from bellhop.adapters.kube.old_servers import Server, clear_nulls, with_protocols
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.adapters.kube.transport import MERGE, Request, Sends
from bellhop.core.identity import MANAGER
from bellhop.ports.kube import Manifest

_APPLY = "application/apply-patch+yaml"
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
"""Codes with which servers refuse a precondition, whether it fails or they do not support it."""
# Written only by the API server: refused in an apply, or turning it into an optimistic write.
_STRIPPED = {"managedFields", "resourceVersion", "uid", "creationTimestamp"}

_SOME = "unknown"
_ANOTHER = Refusal(HTTPStatus.CONFLICT, "Conflict", "what is there is not what was known of it")


class Life(NamedTuple):
    """The uid and version of an object; both are empty if there is none."""

    uid: str = ""
    version: str = ""


Doubted = set[tuple[str, str]]
"""Kinds of which a server refused a new object only for its precondition, by API version."""


def apply(
    transport: Sends, path: str, body: Manifest, call: Call, doubted: Doubted, *, dry_run: bool
) -> Any:
    """Send one apply to the object's `path`; return the object, or the `Refusal`.

    A kind that the server refuses wrongly is added to `doubted`.
    """
    answer, body = _to_one_life(transport, path, body, call, doubted, dry_run=dry_run)

    def merge(patch: Manifest) -> Any:
        request = Request("PATCH", path, {"fieldManager": MANAGER}, patch, MERGE)
        return transport.ask(request, call)

    server = Server(
        read=lambda: transport.ask(Request("GET", path), call),
        merge=merge,
        apply=lambda manifest: _send(transport, path, manifest, call, dry_run=dry_run),
    )
    answer = clear_nulls(server, answer, body, dry_run=dry_run)
    if dry_run or body["metadata"].get("resourceVersion") == _NO_VERSION:
        return answer
    return resolve(server, answer, body)


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
    body = {**body, "metadata": _drop_fields(body["metadata"], _CONDITIONS)}
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
    metadata = _drop_fields(manifest.get("metadata") or {}, _STRIPPED)
    metadata.pop("namespace", None)
    if namespace:
        metadata["namespace"] = namespace
    if uid is not None:
        metadata |= {"uid": uid} if uid else {"resourceVersion": _NO_VERSION}
        metadata |= {"resourceVersion": version} if uid and version else {}
    return with_protocols({**manifest, "metadata": metadata})


def make_status_request(path: str, manifest: Manifest, namespace: str, uid: str) -> Request:
    """Return the request that applies the status of one life of an object, and nothing else."""
    part = {each: manifest[each] for each in ("apiVersion", "kind", "status")}
    part["metadata"] = {"name": manifest["metadata"]["name"]}
    return make_request(path, applicable(part, namespace, uid))


def make_request(path: str, body: Manifest, *, dry_run: bool = False) -> Request:
    """Return the request of an apply, which takes over the fields of other managers."""
    query = {"fieldManager": MANAGER, "force": "true"}
    query |= {"dryRun": "All"} if dry_run else {}
    return Request("PATCH", path, query, body, _APPLY)


def _send(transport: Sends, path: str, body: Manifest, call: Call, *, dry_run: bool) -> Any:
    return transport.ask(make_request(path, body, dry_run=dry_run), call)


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
    """Read the uid and version of the object; return the `Refusal` if they are unknown."""
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


def _drop_fields(metadata: Manifest, fields: Collection[str]) -> Manifest:
    return {key: value for key, value in metadata.items() if key not in fields}
