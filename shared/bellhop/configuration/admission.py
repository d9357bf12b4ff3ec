"""Admission of objects of the configuration cluster: each becomes a manifest, as if it was applied.

    absent, or being deleted     the manifest is deleted, if it was this object's
    invalid                      the former version stays in force
    held by files                files stay in force, unless the contents are equal or the object
                                 asks to take over
    valid                        applied

An object is read when its message is handled, so a message that is late or comes twice does no
harm. The record is written before a new manifest: after a death between the two, the deletion of
the object still deletes the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.api.kinds import (
    CLUSTER,
    CONFIGURED_KINDS,
    Declaration,
    DeclarationKey,
    is_namespaced,
    of,
    parse,
)
from bellhop.api.promotion_annotations import REACHED
from bellhop.api.served import is_same_declaration
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.configuration.cluster_objects import ClusterObjects
from bellhop.configuration.cluster_withdrawal import ClusterWithdrawal
from bellhop.configuration.finalizers import set_finalizer
from bellhop.configuration.promotions import is_of_stage
from bellhop.configuration.records import ConfiguredObject, State
from bellhop.configuration.references import list_read_backs
from bellhop.configuration.withdrawal import Withdrawal
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import version_of
from bellhop.core.sveltos_annotations import ADOPT_FROM, TAKE_OVER
from bellhop.declarations.apply import ManifestWriter, annotate_manifest, find_twins
from bellhop.declarations.diff import HOLDERS
from bellhop.declarations.references import is_referenced
from bellhop.documents.document import Document
from bellhop.errors import MissingError, PermanentError
from bellhop.logs import Log
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.ports.store import ABSENT
from bellhop.registration.holder_namespaces import is_first, resync_soon, widens
from bellhop.rendering.origin_labels import is_generated
from bellhop.settings import Settings
from bellhop.state.messages import Publisher
from bellhop.state.records import Records
from bellhop.state.table import Stored

_KINDS = {(gvk.group, gvk.kind): gvk for gvk in CONFIGURED_KINDS}
_LONGEST_MESSAGE = 4096
ADOPTING = ("ClusterProfile", "ClusterPromotion", "EventTrigger", "Profile")
ADOPT_SVELTOS = {ADOPT_FROM: "sveltos"}
"""The annotation that manifests get of a cluster that was Sveltos' management cluster."""


def find_kind(gvk: GVK) -> GVK | None:
    """Return a kind of the configuration in the version that is read; None for any other kind."""
    return _KINDS.get((gvk.group, gvk.kind))


class Admission:
    """Makes manifests of objects of the configuration cluster."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        clusters: ClusterObjects | None = None,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._clusters = clusters

    def admit(self, cluster: str, key: ObjectKey, read: Callable[[], Manifest | None]) -> None:
        """Read an object, if it is of the configuration, and have the manifest follow it.

        Raises:
            StaleError: another worker admits it at this moment.
            TemporaryError: the cluster does not answer.
        """
        gvk = find_kind(key.gvk)
        catalog = self._catalogs.current()
        if gvk is None or cluster != catalog.configuration:
            return
        namespace = key.namespace if is_namespaced(gvk.kind) else ""
        declared = DeclarationKey(gvk.kind, namespace, key.name)
        kept = self._records.configured.get(*declared)
        kube = self._access.open(cluster, version=catalog.clusters[cluster].credentials)
        if gvk.kind == "Secret" and self._clusters:
            self._publisher.publish(self._clusters.list_naming(catalog, declared))
        if gvk.kind in HOLDERS and not is_referenced(catalog, declared):
            # Nothing names it, or nothing does any more.
            self._withdraw(catalog, kube, declared, kept, None)
            return
        try:
            found = read()
        except MissingError as error:
            # The definition was deleted, and every object with it: no user deleted them.
            self._log.warning("Kept a manifest", object=str(declared), error=str(error))
            return
        if found and is_generated(found["metadata"]):
            # It shows what a trigger made, and declares nothing.
            return
        if found and is_of_stage(kube, found):
            if found["metadata"].get("deletionTimestamp"):
                set_finalizer(kube, found, present=False)
            return
        if found is None or found["metadata"].get("deletionTimestamp"):
            self._withdraw(catalog, kube, declared, kept, found)
        elif gvk == CLUSTER:
            self._admit_cluster(catalog, declared, kept, found)
        else:
            self._admit(catalog, kube, declared, kept, found)

    def _withdraw(
        self,
        catalog: Catalog,
        kube: Kube,
        key: DeclarationKey,
        kept: Stored[ConfiguredObject] | None,
        found: Manifest | None,
    ) -> None:
        """Take the next step for an object that was deleted, or that nothing names any more."""
        if catalog.clusters[catalog.configuration].configuration == "preview":
            self._preview_withdrawal(key, kept)
        elif key.kind == CLUSTER.kind and self._clusters:
            given = self._records, self._settings, self._clusters
            ClusterWithdrawal(*given).withdraw(catalog.configuration, kube, key, kept, found)
        elif kept:
            self._withdrawal().withdraw(catalog.configuration, kube, key, kept, found)

    def _admit(
        self,
        catalog: Catalog,
        kube: Kube,
        key: DeclarationKey,
        kept: Stored[ConfiguredObject] | None,
        found: Manifest,
    ) -> None:
        if kept:
            self._withdrawal().refuse_ending(key, kept.value)
        mode = catalog.clusters[catalog.configuration].configuration
        record = self._make_record(kept, found)
        if mode == "taken-over" and key.kind in ADOPTING:
            record = replace(record, marks={**_mark_taken_over(found), **record.marks})
        try:
            new = parse(Document(_add_marks(found, record), str(key)))
        except PermanentError as error:
            self._put(key, kept, replace(record, state="Rejected", message=_shorten(error)))
            return
        if not record.in_force and not self._may_take(new, found):
            message = "files hold a manifest of this name; delete one of the two"
            self._put(key, kept, replace(record, state="OtherOrigin", message=message))
            return
        if mode == "preview":
            self._put(key, kept, self._preview(new, record))
            return
        if kept and kept.value.state == "Missing":
            # It was lost, and so may be what was written beside it.
            self._records.written.request_all(record.at)
        record = replace(record, state="InForce", in_force=True)
        self._apply(new, kept, record)
        set_finalizer(kube, found, present=True)

    def _admit_cluster(
        self,
        catalog: Catalog,
        key: DeclarationKey,
        kept: Stored[ConfiguredObject] | None,
        found: Manifest,
    ) -> None:
        """Have a cluster follow its object."""
        hub = catalog.clusters[catalog.configuration]
        record = self._make_record(kept, found)
        if self._clusters is None or hub.configuration == "preview":
            message = "its cluster would be registered"
            self._put(key, kept, replace(record, state="DryRun", message=message))
            return
        outcome = self._clusters.admit(hub, found)
        in_force = outcome.state == "InForce" or (record.in_force and outcome.state == "Rejected")
        message = outcome.message[:_LONGEST_MESSAGE]
        record = replace(record, state=outcome.state, in_force=in_force, message=message)
        if is_first(self._records, catalog, key.namespace):
            resync_soon(self._records, catalog)
        self._put(key, kept, record)

    def _apply(
        self, new: Declaration, kept: Stored[ConfiguredObject] | None, record: ConfiguredObject
    ) -> None:
        held = kept is not None and kept.value.in_force
        if not held:
            kept = self._put(new.key, kept, record)
        catalog, writer = self._catalogs.current(), self._make_writer()
        is_wider = widens(catalog, getattr(new, "holder_refs", ()))
        if is_wider:
            # Before it counts: a worker that repeats the work of a dead one finds nothing new.
            resync_soon(self._records, catalog)
        try:
            writer.apply([new])
        except PermanentError as error:
            record = replace(record, state="Rejected", in_force=held, message=_shorten(error))
        if is_wider:
            # And after it, if that took so long that the first resync found the former catalog.
            resync_soon(self._records, catalog)
        self._put(new.key, kept, record)
        named = list_read_backs(self._records, self._catalogs, self._access, new)
        try:
            self._publisher.publish(named)
        except PermanentError as error:
            # The manifest is in force: rendering says what it lacks.
            self._log.warning("Cannot find named objects", object=str(new.key), error=str(error))

    def _withdrawal(self) -> Withdrawal:
        return Withdrawal(self._records, self._make_writer())

    def _may_take(self, new: Declaration, found: Manifest) -> bool:
        """Return whether an object may take the place of the manifest that files have stored."""
        annotations = found["metadata"].get("annotations") or {}
        if annotations.get(TAKE_OVER) == "files":
            return True
        for key in (new.key, *find_twins(new.key)):
            try:
                stored = self._records.manifests.get(*key)
            except MissingError:
                continue
            if stored and not is_same_declaration(of(stored.value), new):
                return False
        return True

    def _preview(self, new: Declaration, record: ConfiguredObject) -> ConfiguredObject:
        try:
            [result] = self._make_writer().preview([new])
        except PermanentError as error:
            return replace(record, state="Rejected", message=_shorten(error))
        return replace(record, state="DryRun", message=f"would be {result.change}")

    def _preview_withdrawal(
        self, key: DeclarationKey, kept: Stored[ConfiguredObject] | None
    ) -> None:
        """Keep what a deleted object declared; of one that had no effect forget the record."""
        if kept is None:
            return
        if kept.value.in_force:
            now, message = self._records.clock.now(), "it was deleted, and would be withdrawn"
            self._put(key, kept, replace(kept.value, state="DryRun", at=now, message=message))
        else:
            self._records.configured.delete(*key, expect=kept.token)

    def _make_writer(self) -> ManifestWriter:
        given = self._records, self._catalogs, self._publisher, self._settings
        return ManifestWriter(*given, origin="cluster")

    def _make_record(
        self, kept: Stored[ConfiguredObject] | None, found: Mapping[str, Any]
    ) -> ConfiguredObject:
        metadata = found["metadata"]
        state: State = "Rejected"
        return ConfiguredObject(
            uid=str(metadata.get("uid", "")),
            version=str(version_of(metadata)),
            generation=int(metadata.get("generation") or 0),
            state=state,
            in_force=kept is not None and kept.value.in_force,
            at=self._records.clock.now(),
            marks=_select_marks(kept.value.marks, metadata) if kept else {},
        )

    def _put(
        self,
        key: DeclarationKey,
        kept: Stored[ConfiguredObject] | None,
        record: ConfiguredObject,
    ) -> Stored[ConfiguredObject]:
        """Write a record that differs from the one that is kept, and return it."""
        old = kept.value if kept else None
        if old and (old.state, old.message) == (record.state, record.message):
            record = replace(record, at=old.at)
        if kept and old == record:
            return kept
        token = self._records.configured.put(*key, record, expect=kept.token if kept else ABSENT)
        return Stored(record, token)


def _mark_taken_over(found: Manifest) -> dict[str, str]:
    """Return the annotations that a manifest gets of an object of Sveltos' management cluster.

    A promotion goes on at the stage that its status has: see `bellhop.promotions.machine`.
    """
    stage = (found.get("status") or {}).get("currentStageName")
    reached = {REACHED: str(stage)} if found["kind"] == "ClusterPromotion" and stage else {}
    return {**ADOPT_SVELTOS, **reached}


def _select_marks(marks: Mapping[str, str], metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations that commands set, as far as the object has none of the name."""
    own = metadata.get("annotations") or {}
    return {name: value for name, value in marks.items() if name not in own}


def _add_marks(found: Manifest, record: ConfiguredObject) -> Manifest:
    """Return an object with the annotations that commands set; its own come first."""
    own = found["metadata"].get("annotations") or {}
    return annotate_manifest(found, {**record.marks, **own}) if record.marks else found


def _shorten(error: PermanentError) -> str:
    return str(error)[:_LONGEST_MESSAGE]
