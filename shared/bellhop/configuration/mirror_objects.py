"""Mirrors as objects of the configuration cluster: each is written, or deleted, with its record.

written    its digest
deleted    while somebody's finalizer keeps it, the record has no digest, and the time since when
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from bellhop.configuration.finalizers import release_mirror
from bellhop.configuration.generated_objects import HOLDERS
from bellhop.configuration.records import WrittenObject
from bellhop.configuration.status_applier import StatusApplier
from bellhop.core.digest import digest
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import (
    ConflictError,
    MissingError,
    PermanentError,
    StaleError,
    TemporaryError,
)
from bellhop.ports.kube import Kube, Manifest
from bellhop.ports.store import ABSENT
from bellhop.rendering.origin_labels import is_generated
from bellhop.state.records import Records

_NAMESPACE = GVK("", "v1", "Namespace")
_USERS = frozenset({"ClusterProfile", "Profile", *HOLDERS})
"""Kinds that users write as well."""

Report = Callable[[ObjectKey, PermanentError], None]
"""Reports an object that the API server refuses."""


class MirrorObjects:
    """Writes and deletes mirrors one by one."""

    def __init__(self, records: Records, applier: StatusApplier, report: Report) -> None:
        self._written = records.written
        self._clock = records.clock
        self._applier = applier
        self._report = report

    def write(self, kube: Kube, owner: str, manifest: Manifest) -> bool:
        """Write a mirror if it differs from what was written; False if it is being deleted."""
        place, mark = make_place(manifest), digest(manifest)
        kept = self._written.get(owner, place)
        if kept and self._written.is_current(kept.value, mark):
            return True
        if kept is None:
            with suppress(StaleError):
                self._written.put(owner, place, WrittenObject("", "", self._now()), expect=ABSENT)
        try:
            stored = self._apply(kube, manifest)["metadata"]
            if "status" in manifest:
                self._applier.apply(kube, manifest, stored["uid"])
        except StaleError as error:
            raise TemporaryError(str(error)) from error
        except PermanentError as error:
            self._report(ObjectKey.of(manifest), error)
            return True
        if "deletionTimestamp" in stored:
            # It is made again once it is deleted.
            self._mark_leaving(owner, place, WrittenObject(mark, stored["uid"], self._now()))
            return False
        self._written.put(owner, place, WrittenObject(mark, stored["uid"], self._now()))
        return True

    def _apply(self, kube: Kube, manifest: Manifest) -> Manifest:
        """Apply a mirror, and create its namespace if it is missing; return it as stored."""
        uid = _find_uid(kube, manifest) if manifest["kind"] in HOLDERS else None
        try:
            return kube.apply(manifest, uid=uid)
        except MissingError:
            namespace = manifest["metadata"].get("namespace", "")
            if not namespace or kube.get(_NAMESPACE, "", namespace):
                raise
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        return kube.apply(manifest, uid=uid)

    def delete(self, kube: Kube, owner: str, place: str, written: WrittenObject) -> bool:
        """Delete a mirror; False while a finalizer keeps it."""
        try:
            rest = remove(kube, place, written.uid)
        except PermanentError as error:
            self._report(read_key(place), error)
            return True
        if rest:
            self._mark_leaving(owner, place, written)
            return False
        self._written.delete(owner, place)
        return True

    def _mark_leaving(self, owner: str, place: str, written: WrittenObject) -> None:
        """Record since when an object is being deleted."""
        kept = self._written.get(owner, place)
        if kept is None or not kept.value.leaves:
            self._written.put(owner, place, replace(written, digest="", at=self._now()))

    def _now(self) -> datetime:
        return self._clock.now()


def remove(kube: Kube, place: str, uid: str) -> Manifest | None:
    """Delete a mirror, and return what is left of it.

    Without a UID, its writer died before it recorded the write.
    """
    key = read_key(place)
    # Somebody may have deleted it, or made another of its name.
    with suppress(StaleError, MissingError):
        found = None if uid else kube.get(*key)
        if found and (found["kind"] not in _USERS or is_generated(found["metadata"])):
            uid = found["metadata"]["uid"]
        if uid:
            return release_mirror(kube, kube.remove(*key, uid=uid))
    return None


def make_place(manifest: Manifest) -> str:
    """Return the place of a mirror's record: the cluster that it is of, and its key."""
    spec = manifest.get("spec") or {}
    of = f"{spec.get('clusterNamespace', '')}/{spec.get('clusterName', '')}"
    return f"{of}/{ObjectKey.of(manifest)}"


def read_key(place: str) -> ObjectKey:
    return ObjectKey.parse(place.split("/", 2)[2])


def is_holder(place: str) -> bool:
    return read_key(place).gvk.kind in HOLDERS


def _find_uid(kube: Kube, manifest: Manifest) -> str:
    """Return the UID of a generated ConfigMap or Secret as it is there; empty if there is none.

    Raises:
        ConflictError: somebody else made one of that name.
    """
    key = ObjectKey.of(manifest)
    found = kube.get(*key)
    if found is None:
        return ""
    if not is_generated(found["metadata"]):
        raise ConflictError(f"no trigger generated the {key.gvk.kind} that is there; delete it")
    return str(found["metadata"]["uid"])
