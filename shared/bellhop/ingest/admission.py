"""Reader of admission reviews and audit events of API servers, as hints and as facts.

An admission request shows a write that may never be stored: it is a hint to read the object back.
An audit event of a finished write has the object as it was stored: a fact. The cases were recorded
from an API server; the recordings are the tests' payloads.
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
from bellhop.state.ingest_policy import IngestPolicy, WatchedKind

KNOCKER = "bellhop-doctor"
"""User of a dry run that tests the webhook: the forwarder answers it with a warning that begins
with its name.
"""

INGEST = "bellhop-ingest"
"""Name in that warning if the API server calls ingest itself."""

_NAMESPACE = GVK("", "v1", "Namespace")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_STORING = frozenset({"create", "update", "patch"})
_SAME_OBJECT = frozenset({"", "status"})
# A namespace is finally deleted by an update of this subresource, with the Namespace itself.
_SAME_IN_ADMISSION = _SAME_OBJECT | {"finalize"}


class Hint(Struct, frozen=True):
    """An object may be about to change; `before` is its resource version as the hint had it.

    By one that is our `own` we apply it ourselves. One that `creates` names a uid that nothing
    stored has had yet, and no version. Of one that is `named` only the name is sent.
    """

    key: ObjectKey
    uid: str
    before: int
    own: bool = False
    creates: bool = False
    named: bool = False


class Watched:
    """Watched kinds of a cluster, found by kind or by resource, in all their versions.

    An API server sends events and audits in one version of a kind; sources may name others.
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
    """Accepts every kind and version, for a receiver that is called only for watched ones."""

    def __init__(self) -> None:
        super().__init__(())

    def by(self, *, own: bool) -> Watched:
        """Return all kinds for any writer: the receiver finds out which writes are ours."""
        del own
        return self

    def versions(self, gvk: GVK) -> Sequence[GVK]:
        """Return the version that was asked for."""
        return [gvk] if gvk.kind else []


class RelevantKinds:
    """Kinds of a cluster that its ingest policy admits; objects of all others are dropped.

    Sources select them, profiles own objects of them, templates read them, or they are of the
    configuration.
    """

    def __init__(self, gate: IngestPolicy) -> None:
        self.asked = Watched(gate.kinds)
        self._held, self._followed = Watched(gate.held), Watched(gate.followed)
        self._configured = Watched(gate.configured)
        beside = (*gate.held, *gate.followed, *gate.configured)
        more = [each for each in beside if each.gvk not in self.asked]
        self.all = Watched([*gate.kinds, *more]) if more else self.asked

    def list_unwatched(self, kinds: Iterable[str]) -> list[str]:
        """Return the kinds, written as `str` does, of which no version is admitted."""
        found = ((kind, *kind.rpartition("/")) for kind in kinds)
        return [kind for kind, at, _, name in found if not self.all.versions(GVK.parse(at, name))]

    def are_owned(self, key: ObjectKey) -> bool:
        """Return whether a profile may own an object of this kind and correct its drift."""
        return bool(self._held.versions(key.gvk))

    def are_read(self, key: ObjectKey) -> bool:
        """Return whether templates may read an object of this kind."""
        return bool(self._followed.versions(key.gvk))

    def are_configured(self, key: ObjectKey) -> bool:
        """Return whether objects of this kind are, or may be, a part of the configuration."""
        return bool(self._configured.versions(key.gvk))


def admission(request: Mapping[str, Any], watched: Watched) -> Sequence[Hint]:
    """Read the `request` of an AdmissionReview v1: a hint for each watched version.

    A dry run gives none. A DELETE has only oldObject; one of a collection has no name in the
    request. Other subresources (scale, binding) have objects of other kinds: they hint at their
    parent, whose version is unknown. A CREATE may have the version that its client sent as a
    precondition: no stored object ever had that version.

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
    """Return whether a write is ours, by its field manager.

    The object does not show it: removing a label that we own leaves no trace. A deletion has no
    field manager, and always counts.
    """
    options = request.get("options")
    return (
        request.get("operation") in ("CREATE", "UPDATE")
        and isinstance(options, Mapping)
        and options.get("fieldManager") == MANAGER
    )


def changes_nothing(request: Mapping[str, Any]) -> bool:
    """Return whether an update leaves the object unchanged; API servers then store nothing.

    Controllers that apply the same manifest every few seconds would otherwise cost a dozen reads
    each time. A change of managedFields only counts as none, since these are not sent.

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


def is_test_call(request: Mapping[str, Any]) -> bool:
    """Return whether a request only tests that the webhook is called."""
    options = request.get("options")
    manager = options.get("fieldManager") if isinstance(options, dict) else ""
    return request.get("dryRun") is True and manager == KNOCKER


def audit(events: Iterable[Any], watched: Watched) -> Iterator[Hint | dict[str, Any]]:
    """Read the items of an audit EventList: stored objects if events have them, or else hints.

    If other versions of the kind are watched than the written one, each has a hint. Only finished
    writes that succeeded count, and no dry runs, which show in the request's URI. A deletion's
    response is a Status without the object, so it is a hint; so is an update that may have deleted
    the object. An event that no API server sends is skipped: a list is sent again as a whole, and
    its other events must not wait.
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
    """Return whether an object may be deleted once this write is stored.

    Removing the last finalizer deletes the object, and the answer has it as it was before; no event
    of a deletion follows. A Pod in its grace period looks the same, so the object has to be read.
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
