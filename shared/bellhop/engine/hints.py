"""Reading what API servers send: admission reviews and audit events, as hints and as facts.

An admission request tells what is about to happen, perhaps: it is a hint to read the object
back. An audit event of a finished write carries the object as it was stored: a fact. What
arrives in which case was recorded from an API server; the recordings are the tests' payloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.record import WatchedKind

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_SAME_OBJECT = frozenset({"", "status"})
# A namespace ends with an update of this subresource, which brings the Namespace itself.
_SAME_IN_ADMISSION = _SAME_OBJECT | {"finalize"}


@dataclass(frozen=True, slots=True)
class Hint:
    """An object may be about to change; `before` is its resource version as the hint had it."""

    key: ObjectKey
    uid: str
    before: int


class Watched:
    """The kinds that count in a cluster, found by kind or by resource."""

    def __init__(self, kinds: Iterable[WatchedKind]) -> None:
        self._kinds = {watched.gvk for watched in kinds}
        self._plurals = {
            (watched.gvk.group, watched.gvk.version, watched.plural): watched.gvk
            for watched in kinds
            if watched.plural
        }

    def __contains__(self, gvk: GVK) -> bool:
        return gvk in self._kinds

    def of_resource(self, group: str, version: str, plural: str) -> GVK | None:
        """Find a kind by the resource that serves it."""
        return self._plurals.get((group, version, plural))


class AnyKind(Watched):
    """Every kind counts: for who is rung only for kinds that do."""

    def __init__(self) -> None:
        super().__init__(())

    def __contains__(self, gvk: GVK) -> bool:
        return bool(gvk.kind)


def admission(request: Mapping[str, Any], watched: Watched) -> Hint | None:
    """Read the `request` of an AdmissionReview v1; None if it concerns nothing that counts.

    A dry run has no effect and is none. A DELETE brings only oldObject; one of a collection has
    no name in the request. Other subresources (scale, binding) bring objects of other kinds:
    they hint at their parent, whose version they do not tell.
    """
    if request.get("dryRun"):
        return None
    resource = request.get("resource") or {}
    gvk: GVK | None
    same = request.get("subResource", "") in _SAME_IN_ADMISSION
    if same:
        kind = request.get("kind") or {}
        gvk = GVK(kind.get("group", ""), kind.get("version", ""), kind.get("kind", ""))
    else:
        gvk = watched.of_resource(
            resource.get("group", ""), resource.get("version", ""), resource.get("resource", "")
        )
    if gvk is None or gvk not in watched:
        return None
    subject = request.get("oldObject") or request.get("object") or {}
    metadata = subject.get("metadata") or {}
    name = request.get("name") or metadata.get("name") or ""
    if not name:
        return None
    namespace = request.get("namespace", "") if gvk != GVK("", "v1", "Namespace") else ""
    return Hint(
        ObjectKey(gvk, namespace, name),
        uid=metadata.get("uid", "") if same else "",
        before=version_of(metadata) if same else 0,
    )


def audit(events: Iterable[Any], watched: Watched) -> Iterator[Hint | dict[str, Any]]:
    """Read the items of an audit EventList: stored objects where events have them, else hints.

    Only finished writes that succeeded count, and no dry runs: those show in the request's URI
    alone. A deletion's response is a Status without the object, so it is a hint; so is an update
    that may have ended the object.
    """
    for event in events:
        if not isinstance(event, Mapping) or not _happened(event):
            continue
        ref = event.get("objectRef") or {}
        response = event.get("responseObject") or {}
        if event.get("verb") in {"create", "update", "patch"} and _same_object(ref, response):
            if GVK.of(response) in watched:
                yield _ending(response) or response
            continue
        yield from _deletions(event, ref, response, watched)


def version_of(metadata: Mapping[str, Any]) -> int:
    """Read a resource version as a number; 0 where there is none."""
    text = str(metadata.get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0


def _happened(event: Mapping[str, Any]) -> bool:
    query = parse_qs(urlsplit(str(event.get("requestURI", ""))).query)
    code = (event.get("responseStatus") or {}).get("code", 0)
    body = event.get("requestObject")
    dry = bool(query.get("dryRun")) or (isinstance(body, Mapping) and bool(body.get("dryRun")))
    return (
        event.get("stage") == "ResponseComplete"
        and event.get("verb") in _WRITES
        and 200 <= code < 300  # noqa: PLR2004 - HTTP's success
        and not dry
    )


def _same_object(ref: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    metadata = response.get("metadata") or {}
    return (
        ref.get("subresource", "") in _SAME_OBJECT
        and bool(metadata.get("resourceVersion"))
        and bool(metadata.get("name"))
    )


def _ending(response: dict[str, Any]) -> Hint | None:
    """Return a hint for an object that nothing holds any more once this write is stored.

    Removing the last finalizer deletes the object and answers with it as it was before; no event
    of a deletion follows. A Pod in its grace period looks the same, so it takes a look to tell.
    """
    metadata = response.get("metadata") or {}
    if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
        return Hint(ObjectKey.of(response), str(metadata.get("uid") or ""), before=0)
    return None


def _deletions(
    event: Mapping[str, Any],
    ref: Mapping[str, Any],
    response: Mapping[str, Any],
    watched: Watched,
) -> Iterator[Hint]:
    gvk = watched.of_resource(
        ref.get("apiGroup", ""), ref.get("apiVersion", ""), ref.get("resource", "")
    )
    if gvk is None:
        return
    if event.get("verb") == "deletecollection":
        for item in response.get("items") or []:
            metadata = item.get("metadata") or {}
            yield Hint(
                ObjectKey(gvk, metadata.get("namespace", ""), metadata.get("name", "")),
                metadata.get("uid", ""),
                version_of(metadata),
            )
        return
    name = ref.get("name") or ((response.get("metadata") or {}).get("name"))
    if not name:
        return
    details = response.get("details") or response.get("metadata") or {}
    namespace = "" if gvk == GVK("", "v1", "Namespace") else ref.get("namespace", "")
    yield Hint(ObjectKey(gvk, namespace, name), details.get("uid", ""), before=0)
