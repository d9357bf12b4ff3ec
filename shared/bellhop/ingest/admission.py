"""Reading what API servers send: admission reviews and audit events, as hints and as facts.

An admission request tells what is about to happen, perhaps: it is a hint to read the object
back. An audit event of a finished write carries the object as it was stored: a fact. What
arrives in which case was recorded from an API server; the recordings are the tests' payloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.digest import same
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import MANAGER, check_key, check_uid, check_version
from bellhop.errors import InvalidError
from bellhop.state.record import WatchedKind

KNOCKER = "bellhop-doctor"
"""Who changes nothing in a dry run, to see whether the forwarder is rung: it answers with a warning
that begins with its name."""

INGEST = "bellhop-ingest"
"""Who answers so where an API server calls ingest itself."""

_NAMESPACE = GVK("", "v1", "Namespace")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_STORING = frozenset({"create", "update", "patch"})
_SAME_OBJECT = frozenset({"", "status"})
# A namespace ends with an update of this subresource, which brings the Namespace itself.
_SAME_IN_ADMISSION = _SAME_OBJECT | {"finalize"}


class Hint(Struct, frozen=True):
    """An object may be about to change; `before` is its resource version as the hint had it.

    By one that is our `own` we apply it ourselves. One that `creates` names a uid that nothing
    stored has had yet, and no version.
    """

    key: ObjectKey
    uid: str
    before: int
    own: bool = False
    creates: bool = False


class Watched:
    """The kinds that count in a cluster, found by kind or by resource, in all their versions.

    An API server rings and audits in one version of a kind; sources may name others.
    """

    def __init__(self, kinds: Iterable[WatchedKind]) -> None:
        kinds = set(kinds)
        self._asking = [each for each in kinds if each.own]
        self._kinds: dict[tuple[str, str], list[GVK]] = {}
        self._plurals: dict[tuple[str, str], list[GVK]] = {}
        for watched in sorted(kinds, key=lambda each: each.gvk):
            gvk = watched.gvk
            self._kinds.setdefault((gvk.group, gvk.kind), []).append(gvk)
            if watched.plural:
                self._plurals.setdefault((gvk.group, watched.plural), []).append(gvk)

    def __contains__(self, gvk: GVK) -> bool:
        return gvk in self.versions(gvk)

    def by(self, *, own: bool) -> Watched:
        """Return the kinds that count for a write: for one of our own those that ask for such."""
        return Watched(self._asking) if own else self

    def versions(self, gvk: GVK) -> Sequence[GVK]:
        """Return the versions that count of a kind."""
        return self._kinds.get((gvk.group, gvk.kind), [])

    def of_resource(self, group: str, plural: str) -> Sequence[GVK]:
        """Find a kind, in the versions that count, by the resource that serves it."""
        return self._plurals.get((group, plural), [])


class AnyKind(Watched):
    """Every kind counts, as it comes: for who is rung only for kinds and versions that do."""

    def __init__(self) -> None:
        super().__init__(())

    def by(self, *, own: bool) -> Watched:
        """Return the kinds that count for a write, whoever does it: others tell what is ours."""
        del own
        return self

    def versions(self, gvk: GVK) -> Sequence[GVK]:
        """Return the version that was asked for."""
        return [gvk] if gvk.kind else []


def admission(request: Mapping[str, Any], watched: Watched) -> Sequence[Hint]:
    """Read the `request` of an AdmissionReview v1: a hint for each version that counts, or none.

    A dry run has no effect and is none. A DELETE brings only oldObject; one of a collection has
    no name in the request. Other subresources (scale, binding) bring objects of other kinds:
    they hint at their parent, whose version they do not tell. A CREATE may show the version that
    its client sent, as a condition that nothing be there: no stored object ever had that version.

    Raises:
        InvalidError: no API server sends such a request.
    """
    if request.get("dryRun"):
        return []
    own = _is_own(request)
    watched = watched.by(own=own)
    same = _text(request.get("subResource")) in _SAME_IN_ADMISSION
    if same:
        kind = _mapping(request.get("kind"))
        gvk = GVK(*(_text(kind.get(part)) for part in ("group", "version", "kind")))
        versions = watched.versions(gvk)
    else:
        resource = _mapping(request.get("resource"))
        versions = watched.of_resource(
            *(_text(resource.get(part)) for part in ("group", "resource"))
        )
    subject = _mapping(request.get("oldObject")) or _mapping(request.get("object"))
    metadata = _mapping(subject.get("metadata"))
    name = _text(request.get("name")) or _text(metadata.get("name"))
    if not name:
        return []
    namespace = _text(request.get("namespace"))
    creates = same and request.get("operation") == "CREATE"
    if creates:
        metadata = {"uid": metadata.get("uid")}
    hints = _hints(versions, namespace, name, metadata if same else {})
    return [replace(each, own=own, creates=creates) for each in hints]


def _is_own(request: Mapping[str, Any]) -> bool:
    """Say whether a write is ours, by the field manager that it is done as.

    The object itself does not tell: who takes a label away that we own leaves no trace in it. A
    deletion has no field manager, and counts whoever does it.
    """
    options = request.get("options")
    return (
        request.get("operation") in ("CREATE", "UPDATE")
        and isinstance(options, Mapping)
        and options.get("fieldManager") == MANAGER
    )


def changes_nothing(request: Mapping[str, Any]) -> bool:
    """Say if an update would leave the object as it was; API servers then store nothing.

    Controllers that apply the same thing every few seconds would otherwise cost a dozen reads
    each time. What only changes managedFields counts as nothing, since these are not sent.

    Raises:
        InvalidError: no API server sends such a request.
    """
    if request.get("operation") != "UPDATE":
        return False
    before, after = request.get("oldObject"), request.get("object")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    return same(_bare(before), _bare(after))


def _bare(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = {**_mapping(manifest.get("metadata"))}
    metadata.pop("managedFields", None)
    return {**manifest, "metadata": metadata}


def is_knock(request: Mapping[str, Any]) -> bool:
    """Say if somebody only wants to know whether we are rung."""
    options = request.get("options")
    manager = options.get("fieldManager") if isinstance(options, dict) else ""
    return request.get("dryRun") is True and manager == KNOCKER


def audit(events: Iterable[Any], watched: Watched) -> Iterator[Hint | dict[str, Any]]:
    """Read the items of an audit EventList: stored objects where events have them, else hints.

    Where other versions of the kind count than the one that was written, each has a hint.
    Only finished writes that succeeded count, and no dry runs: those show in the request's URI
    alone. A deletion's response is a Status without the object, so it is a hint; so is an update
    that may have ended the object. An event that no API server sends is passed over: a list is
    sent again as a whole, and others in it must not wait for it.
    """
    for event in events:
        with suppress(InvalidError):
            # All of one event or nothing.
            yield from list(_of_event(_mapping(event), watched))


def _of_event(event: Mapping[str, Any], watched: Watched) -> Iterator[Hint | dict[str, Any]]:
    if not _happened(event):
        return
    if event.get("verb") in _STORING:
        managers = parse_qs(urlsplit(_text(event.get("requestURI"))).query).get("fieldManager")
        watched = watched.by(own=managers == [MANAGER])
    ref, response = _mapping(event.get("objectRef")), _mapping(event.get("responseObject"))
    if event.get("verb") in _STORING and _same_object(ref, response):
        yield from _stored(response, watched)
        return
    yield from _deletions(event, ref, response, watched)


def _hints(
    versions: Iterable[GVK], namespace: str, name: str, metadata: Mapping[str, Any]
) -> list[Hint]:
    uid, before = metadata.get("uid"), metadata.get("resourceVersion")
    keys = [ObjectKey(gvk, "" if gvk == _NAMESPACE else namespace, name) for gvk in versions]
    for key in keys:
        check_key(key)
    return [Hint(key, check_uid(uid), check_version(before)) for key in keys]


def _mapping(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidError("cannot read what an API server is to have sent: a mapping is missing")
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidError(
            "cannot read what an API server is to have sent: a name must be a string"
        )
    return value


def _happened(event: Mapping[str, Any]) -> bool:
    try:
        query = parse_qs(urlsplit(_text(event.get("requestURI"))).query)
    except ValueError:
        return False
    code = _mapping(event.get("responseStatus")).get("code", 0)
    body = event.get("requestObject")
    dry = bool(query.get("dryRun")) or (isinstance(body, Mapping) and bool(body.get("dryRun")))
    return (
        event.get("stage") == "ResponseComplete"
        and _text(event.get("verb")) in _WRITES
        and isinstance(code, int)
        and 200 <= code < 300  # noqa: PLR2004 - HTTP's success
        and not dry
    )


def _same_object(ref: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    metadata = _mapping(response.get("metadata"))
    return (
        _text(ref.get("subresource")) in _SAME_OBJECT
        and bool(metadata.get("resourceVersion"))
        and bool(metadata.get("name"))
    )


def _stored(response: Mapping[str, Any], watched: Watched) -> Iterator[Hint | dict[str, Any]]:
    key, metadata = ObjectKey.of(response), _mapping(response.get("metadata"))
    written = [gvk for gvk in watched.versions(key.gvk) if gvk == key.gvk and not _ends(metadata)]
    if written:
        yield dict(response)
    others = [gvk for gvk in watched.versions(key.gvk) if gvk not in written]
    # Stored already: what a look shows is news, whatever its version.
    yield from _hints(others, key.namespace, key.name, {"uid": metadata.get("uid")})


def _ends(metadata: Mapping[str, Any]) -> bool:
    """Say if nothing holds an object any more once this write is stored.

    Removing the last finalizer deletes the object and answers with it as it was before; no event
    of a deletion follows. A Pod in its grace period looks the same, so it takes a look to tell.
    """
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")


def _deletions(
    event: Mapping[str, Any],
    ref: Mapping[str, Any],
    response: Mapping[str, Any],
    watched: Watched,
) -> Iterator[Hint]:
    versions = watched.of_resource(*(_text(ref.get(part)) for part in ("apiGroup", "resource")))
    if event.get("verb") == "deletecollection":
        items = response.get("items")
        for item in items if isinstance(items, list) else []:
            metadata = _mapping(_mapping(item).get("metadata"))
            namespace, name = _text(metadata.get("namespace")), _text(metadata.get("name"))
            yield from _hints(versions, namespace, name, metadata)
        return
    metadata = _mapping(response.get("metadata"))
    name = _text(ref.get("name")) or _text(metadata.get("name"))
    if not name:
        return
    details = _mapping(response.get("details")) or metadata
    namespace = _text(ref.get("namespace"))
    yield from _hints(versions, namespace, name, {"uid": details.get("uid")})
