"""Writer of manifests: what users apply and delete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from msgspec import Struct

from bellhop.api.kinds import ClusterProfile, Declaration, DeclarationKey, EventTrigger, of
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.dependencies import refuse_cycle, refuse_exchange
from bellhop.catalog.records import Manifest
from bellhop.core.digest import same
from bellhop.declarations.cluster_selection import choose
from bellhop.declarations.cluster_writer import ClusterWriter, merge
from bellhop.declarations.deletion_guard import RemovalPlan
from bellhop.declarations.diff import PROFILES, PROMOTION, SETS, TRIGGERS, Key
from bellhop.declarations.end_behavior import note_endings
from bellhop.declarations.records import HeldRemoval
from bellhop.declarations.stages import is_preserved, list_preserved, refuse_taken_names
from bellhop.errors import ConflictError, InvalidError, LostWriteError, MissingError, StaleError
from bellhop.events.transfer import ReportTransfer
from bellhop.ports.store import ABSENT
from bellhop.settings import Settings
from bellhop.state.cluster import SetSelection
from bellhop.state.concurrency import until_written
from bellhop.state.messages import Publisher
from bellhop.state.records import Records

T = TypeVar("T")

_NOTHING: Mapping[str, str | None] = {}

Change = Literal["created", "configured", "unchanged", "deleted"]


class WrittenManifest(Struct, frozen=True):
    """Result for one object that a user applied or deleted."""

    kind: str
    namespace: str
    name: str
    change: Change


Origin = Literal["files", "cluster"]
"""The place where a manifest is kept: files that people apply, or the configuration cluster."""


class ManifestWriter(ClusterWriter):
    """Changes manifests and clusters, and publishes the effects.

    A writer of `files` changes nothing that the configuration cluster holds.
    """

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        settings: Settings,
        *,
        origin: Origin = "files",
    ) -> None:
        super().__init__(records, catalogs, publisher, settings)
        self._reports = ReportTransfer(records)
        self._origin = origin

    def apply(self, declarations: Sequence[Declaration]) -> list[WrittenManifest]:
        """Store objects that are all valid; those that are as they were cost nothing.

        Raises:
            ConflictError: the configuration cluster holds one; then none is stored.
            InvalidError: an object cannot become what it is to be; then none is stored.
        """
        results = self._preview(declarations)
        changed = {
            new.key: (new, result.change)
            for new, result in zip(declarations, results, strict=True)
            if result.change != "unchanged"
        }
        if changed:
            before = self._catalogs.known()
            self._refuse_other_origin(before, "apply", changed)
            refuse_taken_names(before, declarations)
            pending = self._note_change(changed)
            declared = {key: new for key, (new, _) in changed.items()}
            self._reports.copy(before, declared)
            created = {key for key, (_, change) in changed.items() if change == "created"}
            held = self._hold(before, declared, "changed", created)
            written = {self._write(new, change): new for new, change in changed.values()}
            keys = [*changed, *self._delete_twins(declared)]
            self._records.catalog.change("declared", keys=keys)
            after = self._catalogs.known(written)
            self._publish_effects(keys, before, pending, after, held)
        return results

    def preview(
        self, declarations: Sequence[Declaration], *, anywhere: bool = False
    ) -> list[WrittenManifest]:
        """Say what would become of objects that are all valid, and store nothing.

        `anywhere` they may be kept: a user compares what is to be written to the cluster, too.

        Raises:
            ConflictError: the configuration cluster holds one.
            InvalidError: an object cannot become what it is to be.
        """
        results = self._preview(declarations)
        changed = [
            new.key
            for new, result in zip(declarations, results, strict=True)
            if result.change != "unchanged"
        ]
        if changed:
            before = self._catalogs.known()
            if not anywhere:
                self._refuse_other_origin(before, "apply", changed)
            refuse_taken_names(before, declarations)
        return results

    def _preview(self, declarations: Sequence[Declaration]) -> list[WrittenManifest]:
        beside = {new.key for new in declarations}
        self._refuse_cycles(declarations)
        results = []
        for new in declarations:
            old = self._read_stored(new)
            self._refuse_change(new, old, beside)
            results.append(WrittenManifest(*new.key, _change(new, old)))
        return results

    @until_written("change {key[0]} '{key[2]}'")
    def remark(self, key: Key, annotations: Mapping[str, str | None]) -> WrittenManifest:
        """Set annotations of a stored manifest, and remove those whose value is None.

        A concurrent apply of another manifest keeps its own content.

        Raises:
            ConflictError: the object of the configuration cluster has one that is to be removed.
            InvalidError: the annotations are invalid for the kind.
            MissingError: the manifest does not exist.
            StaleError: other writers change it all the time.
        """
        kept = self._records.manifests.get(*key)
        if kept is None:
            raise MissingError(f"cannot change {key[0]} '{key[2]}': it is not there any more")
        manifest = annotate_manifest(kept.value, annotations)
        if same(manifest, kept.value):
            return WrittenManifest(*key, "unchanged")
        new = of(manifest)
        before = self._catalogs.known()
        if before.configuration:
            self._refuse_own_marks(before, DeclarationKey(*key), kept.value, annotations)
            self._records.configured.mark(key, annotations)
        pending = self._note_change([key])
        held = self._hold(before, {new.key: new}, "changed")
        try:
            token = self._records.manifests.put(*key, manifest, expect=kept.token)
        except LostWriteError:
            self._records.pending.delete(pending)
            raise
        self._records.catalog.change("declared", keys=[key])
        self._publish_effects([key], before, pending, self._catalogs.known({token: new}), held)
        return WrittenManifest(*key, "configured")

    def delete(self, keys: Iterable[tuple[str, str, str]]) -> list[WrittenManifest]:
        """Delete objects by (kind, namespace, name).

        Raises:
            ConflictError: the configuration cluster holds one; then none is deleted.
            MissingError: one is not there; then none is deleted.
        """
        deleted = [DeclarationKey(*key) for key in keys]
        for kind, namespace, name in deleted:
            if not self._records.manifests.has(kind, namespace, name):
                shown = f"{namespace}/{name}" if namespace else name
                raise MissingError(f"cannot delete {kind} '{shown}': there is none")
        before = self._catalogs.known()
        self._refuse_other_origin(before, "delete", deleted)
        stay = {each.key: each for each in list_preserved(self._records, before, deleted)}
        changed = [*deleted, *stay]
        pending = self._note_change(changed)
        note_endings(
            self._records, before, [key for key in deleted if not is_preserved(before, key)]
        )
        held = self._hold(before, {**dict.fromkeys(deleted), **stay}, "deleted")
        for each in stay.values():
            self._records.manifests.put(*each.key, each.written)
        for key in deleted:
            self._records.manifests.delete(*key)
        self._records.catalog.change("declared", keys=changed)
        self._publish_effects(changed, before, pending, held=held)
        return [WrittenManifest(*key, "deleted") for key in deleted]

    def _refuse_other_origin(
        self, catalog: Catalog, verb: str, keys: Iterable[DeclarationKey]
    ) -> None:
        cluster = catalog.configuration if self._origin == "files" else ""
        if not cluster:
            return
        for key in keys:
            if self._records.configured.holds(*key):
                raise ConflictError(
                    f"cannot {verb} {key.kind} '{key.place}': cluster '{cluster}' holds it; change"
                    " it there with kubectl"
                )

    def _refuse_own_marks(
        self,
        catalog: Catalog,
        key: DeclarationKey,
        manifest: Manifest,
        changes: Mapping[str, str | None],
    ) -> None:
        """Refuse to remove an annotation that no command has set: the object has it itself."""
        found = self._records.configured.get(*key)
        own = (manifest.get("metadata") or {}).get("annotations") or {}
        for name in (each for each, value in changes.items() if value is None and each in own):
            if found and found.value.in_force and name not in found.value.marks:
                raise ConflictError(
                    f"cannot remove the annotation {name} of {key.kind} '{key.place}': its object"
                    f" in cluster '{catalog.configuration}' has it; remove it there with kubectl"
                )

    def _write(self, new: Declaration, change: Change) -> str:
        """Write a manifest, replacing what any other writer wrote, and return its token.

        A new manifest is not looked up again: the conditional write finds out if it exists.
        """
        if change == "created":
            with suppress(StaleError):
                return self._records.manifests.put(*new.key, new.written, expect=ABSENT)
        return self._records.manifests.put(*new.key, new.written)

    def _read_stored(self, new: Declaration) -> Manifest | None:
        """Return the manifest that a new one replaces: also one of the kind's other name.

        Where a cluster holds the configuration, the origin was decided before; files are refused.
        """
        for key in (*self._list_twins(new.key), new.key):
            try:
                kept = self._records.manifests.get(*key)
            except MissingError:
                # The stored content is lost: applying the manifest again is the cure.
                return None
            if kept:
                return kept.value
        return None

    def _list_twins(self, key: DeclarationKey) -> list[DeclarationKey]:
        """Return the keys of manifests that one of the configuration cluster takes the place of."""
        return find_twins(key) if self._origin == "cluster" else []

    def _delete_twins(self, written: Iterable[DeclarationKey]) -> list[DeclarationKey]:
        """Delete the manifests of which others took the place; return their keys."""
        twins = [twin for key in written for twin in self._list_twins(key)]
        return [twin for twin in twins if self._records.manifests.delete(*twin)]

    def _refuse_change(
        self, new: Declaration, old: Manifest | None, beside: set[DeclarationKey]
    ) -> None:
        if not isinstance(new, EventTrigger):
            return
        was = of(old) if old else None
        if isinstance(was, EventTrigger):
            new.refuse_change(was)
        for twin in find_twins(new.key):
            if twin in beside or (self._origin == "files" and self._records.manifests.has(*twin)):
                self._refuse_other_origin(self._catalogs.known(), "apply", [twin])
                other = twin.kind
                raise InvalidError(
                    f"cannot apply {new.kind} '{new.name}': there is an {other} of that name,"
                    f" and both are one kind; delete it first: `bellhop delete {other.lower()}"
                    f" {new.name}`"
                )

    def _refuse_cycles(self, declarations: Iterable[Declaration]) -> None:
        """See that no profile comes after itself, or after one that it replaces.

        Of two that are declared at once, both have the error later.

        Raises:
            InvalidError: one does.
        """
        profiles = [each for each in declarations if isinstance(each, ClusterProfile)]
        if not any(each.after for each in profiles):
            return
        after = {**self._catalogs.known().after, **{each.rule: each.after for each in profiles}}
        for each in profiles:
            refuse_cycle(each.rule, after)
            refuse_exchange(each.rule, each.replaces, after)

    def foresee(
        self, declarations: Iterable[Declaration], deleted: Iterable[Key] = ()
    ) -> RemovalPlan:
        """Return what would be removed if objects were applied, and others deleted."""
        before = self._catalogs.known()
        changed: dict[DeclarationKey, Declaration | None] = {new.key: new for new in declarations}
        changed |= {DeclarationKey(*key): None for key in deleted}
        keys = list(_removing(changed))
        return self._removals.plan(before, _changed(before, changed), keys)

    def preview_catalog(self, declarations: Iterable[Declaration]) -> Catalog:
        """Return the catalog as it would be if objects were applied."""
        return _changed(self._catalogs.known(), {new.key: new for new in declarations})

    def _hold(
        self,
        before: Catalog,
        changed: Mapping[DeclarationKey, Declaration | None],
        verb: str,
        created: Collection[DeclarationKey] = (),
    ) -> Sequence[HeldRemoval]:
        """Hold the removals of a change that is about to be written, if they are too many at once.

        `created` manifests remove nothing, but others that change with them may name them.
        """
        self.held = ()
        if keys := [key for key in _removing(changed) if key not in created]:
            first, *others = keys
            more = f" and {len(others)} more were" if others else " was"
            cause, after = f"{first}{more} {verb}", _changed(before, changed)
            self.held = self._removals.hold(before, after, keys, cause, self._also)
        return self.held


def _changed(catalog: Catalog, changed: Mapping[DeclarationKey, Declaration | None]) -> Catalog:
    """Return a catalog as it would be after a change of rules, when sets have chosen again."""
    clusters = catalog.clusters.values()
    after = catalog.with_rules(catalog.revision, clusters, changed, catalog.choices)
    sets = {key.place for key in changed if key.kind in SETS} & after.choosing.keys()
    if not sets:
        return after
    chosen = {
        place: choose(
            after.sets[place].most or 0,
            after.pool(place),
            after.choices.get(place, SetSelection()),
            lambda _: False,
        )
        for place in sets
    }
    return after.with_clusters(after.revision, clusters, {**after.choices, **chosen})


def _removing(
    changed: Mapping[DeclarationKey, Declaration | None],
) -> dict[DeclarationKey, Declaration | None]:
    """Return the rules whose change may by itself take add-ons from clusters.

    A changed EventSource ends matches instead, as objects are evaluated.
    """
    found = changed.items()
    deciding = {
        key: new for key, new in found if key.kind in (*TRIGGERS, *PROFILES, *SETS, PROMOTION)
    }
    deleted = {key: new for key, new in found if key.kind == "EventSource" and new is None}
    return deciding | deleted


def find_twins(key: DeclarationKey) -> list[DeclarationKey]:
    """Return the keys under which files may hold the same trigger: its kind has two names."""
    names = TRIGGERS if key.kind in TRIGGERS else ()
    return [key._replace(kind=each) for each in names if each != key.kind]


def annotate_manifest(manifest: Manifest, changes: Mapping[str, str | None]) -> Manifest:
    """Return a manifest with other annotations; without any it has no place for them."""
    metadata = dict(manifest.get("metadata") or {})
    merged = merge(metadata.pop("annotations", None) or {}, changes)
    return {**manifest, "metadata": {**metadata, **({"annotations": merged} if merged else {})}}


def _change(new: Declaration, old: Manifest | None) -> Change:
    if old is None:
        return "created"
    return "unchanged" if same(old, new.written) else "configured"
