"""Declare: what users apply and delete, and clusters that come, change and go.

Every change is noted before it is made and struck out after all that follows from it is
published; what a crash leaves in between is made good by `resume`, which the schedule calls.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, Declaration, DeclarationKey, EventTrigger, of
from bellhop.api.overwrite import refuse_overwrite
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.dependencies import refuse_cycle, refuse_exchange
from bellhop.catalog.records.manifests import UPGRADED_FROM, Manifest
from bellhop.catalog.set_choice import choose
from bellhop.core.digest import same
from bellhop.declarations.cluster_selection import SetSelector
from bellhop.declarations.deletion_guard import RemovalGuard, RemovalPlan
from bellhop.declarations.diff import PROFILES, SETS, TRIGGERS, Key
from bellhop.declarations.end_behavior import note_endings
from bellhop.declarations.fan_out import ChangeFanOut
from bellhop.declarations.records.held_removals import Rule
from bellhop.errors import InvalidError, LostWriteError, MissingError, StaleError
from bellhop.events.transfer import ReportTransfer
from bellhop.ports.store import ABSENT, ANY
from bellhop.settings import Settings
from bellhop.state.concurrency import until_written
from bellhop.state.held_removal import HeldRemoval
from bellhop.state.messages import Publisher
from bellhop.state.record import Cluster, SetSelection
from bellhop.state.records import Records
from bellhop.state.table import Stored

T = TypeVar("T")

_NOTHING: Mapping[str, str | None] = {}

Change = Literal["created", "configured", "unchanged", "deleted"]


_RELEASED, _RULES = "released", "rules"
"""In a release that is under way: which held change it releases, and the rules that it concerns."""


class WrittenManifest(Struct, frozen=True):
    """What became of one object that a user applied or deleted."""

    kind: str
    namespace: str
    name: str
    change: Change


class ManifestWriter:
    """Changes what users declared, and tells the stages."""

    def __init__(
        self, records: Records, catalogs: Catalogs, publisher: Publisher, settings: Settings
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._consequences = ChangeFanOut(records, publisher, settings)
        self._reports = ReportTransfer(records)
        self._removals = RemovalGuard(records, settings)
        self._choosing = SetSelector(records, catalogs, self._consequences, self._removals)
        self.held: Sequence[HeldRemoval] = ()
        """What the last change that was made by this object would have removed, and is held."""
        self._also: frozenset[Rule] = frozenset()

    # Manifests --------------------------------------------------------------------------------

    def apply(self, declarations: Sequence[Declaration]) -> list[WrittenManifest]:
        """Store objects that are all valid; those that are as they were cost nothing.

        Raises:
            InvalidError: an object cannot become what it is to be; then none is stored.
        """
        results = self.rehearse(declarations)
        changed = {
            new.key: (new, result.change)
            for new, result in zip(declarations, results, strict=True)
            if result.change != "unchanged"
        }
        if changed:
            before = self._catalogs.known()
            pending = self._begin(changed)
            declared = {key: new for key, (new, _) in changed.items()}
            self._reports.copy(before, declared)
            created = {key for key, (_, change) in changed.items() if change == "created"}
            held = self._hold(before, declared, "changed", created)
            written = {self._write(new, change): new for new, change in changed.values()}
            self._records.catalog.change("declared", keys=list(changed))
            after = self._catalogs.known(written)
            self._follow(list(changed), before, pending, after, held)
        return results

    def rehearse(self, declarations: Sequence[Declaration]) -> list[WrittenManifest]:
        """Say what would become of objects that are all valid, and store nothing.

        Raises:
            InvalidError: an object cannot become what it is to be.
        """
        beside = {new.key for new in declarations}
        self._refuse_cycles(declarations)
        results = []
        for new in declarations:
            old = self._old(new)
            self._refuse_change(new, old, beside)
            results.append(WrittenManifest(*new.key, _change(new, old)))
        return results

    @until_written("change {key[0]} '{key[2]}'")
    def remark(self, key: Key, annotations: Mapping[str, str | None]) -> WrittenManifest:
        """Set annotations of what was declared, or take away those that are None.

        Whoever applies another manifest meanwhile has not seen them, nor loses what he wrote.

        Raises:
            InvalidError: it cannot have them.
            MissingError: it is not there.
            StaleError: others change it all the time.
        """
        kept = self._records.manifests.get(*key)
        if kept is None:
            raise MissingError(f"cannot change {key[0]} '{key[2]}': it is not there any more")
        manifest = _annotated(kept.value, annotations)
        if same(manifest, kept.value):
            return WrittenManifest(*key, "unchanged")
        new = of(manifest)
        before = self._catalogs.known()
        pending = self._begin([key])
        held = self._hold(before, {new.key: new}, "changed")
        try:
            token = self._records.manifests.put(*key, manifest, expect=kept.token)
        except LostWriteError:
            self._records.pending.delete(pending)
            raise
        self._records.catalog.change("declared", keys=[key])
        self._follow([key], before, pending, self._catalogs.known({token: new}), held)
        return WrittenManifest(*key, "configured")

    def delete(self, keys: Iterable[tuple[str, str, str]]) -> list[WrittenManifest]:
        """Delete objects by (kind, namespace, name).

        Raises:
            MissingError: one is not there; then none is deleted.
        """
        keys = list(keys)
        for kind, namespace, name in keys:
            if not self._records.manifests.has(kind, namespace, name):
                shown = f"{namespace}/{name}" if namespace else name
                raise MissingError(f"cannot delete {kind} '{shown}': there is none")
        before = self._catalogs.known()
        pending = self._begin(keys)
        note_endings(self._records, before, keys)
        held = self._hold(before, {DeclarationKey(*key): None for key in keys}, "deleted")
        for key in keys:
            self._records.manifests.delete(*key)
        self._records.catalog.change("declared", keys=keys)
        self._follow(keys, before, pending, held=held)
        return [WrittenManifest(*key, "deleted") for key in keys]

    def _write(self, new: Declaration, change: Change) -> str:
        """Write what is declared, whoever else does, and return its token.

        What was not there is not looked for once more: the write finds out whether it came.
        """
        if change == "created":
            with suppress(StaleError):
                return self._records.manifests.put(*new.key, new.written, expect=ABSENT)
        return self._records.manifests.put(*new.key, new.written)

    def _old(self, new: Declaration) -> Manifest | None:
        try:
            kept = self._records.manifests.get(*new.key)
        except MissingError:
            # What was declared is lost: declaring it again is the cure.
            return None
        return kept.value if kept else None

    def _refuse_change(
        self, new: Declaration, old: Manifest | None, beside: set[DeclarationKey]
    ) -> None:
        if not isinstance(new, EventTrigger):
            return
        was = of(old) if old else None
        if isinstance(was, EventTrigger):
            new.refuse_change(was)
        for other in TRIGGERS:
            twin = DeclarationKey(other, "", new.name)
            if other != new.kind and (twin in beside or self._records.manifests.has(*twin)):
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

    # Clusters -----------------------------------------------------------------------------------

    def register(self, cluster: Cluster, *, expect: str | None = ANY) -> str:
        """Add a cluster, or take over one registered again, and have it swept.

        Returns the token of its record, which `expect` may say what it has to be before.

        Raises:
            InvalidError: it has too many labels; nothing is changed.
            StaleError: somebody else has written the cluster meanwhile; nothing is changed.
        """
        cluster.refuse_too_much()
        before = self._catalogs.known()
        keys = [("Cluster", cluster.namespace, cluster.name)]
        pending = self._begin(keys)
        new = self._records.clusters.get(cluster.key) is None
        held = self._hold_relabelled(before, cluster)
        if new:
            # What a killed deregistration left is not about this cluster. Before the write: from
            # then on somebody who reads the catalog anew may bring something to it.
            self._forget_traces(cluster.key)
        try:
            token = self._records.clusters.put(cluster, expect=expect)
        except StaleError:
            if new:
                # Who was quicker may have had brought what we forgot: all that follows is asked for
                # again, also where we die before.
                self._follow(keys, None, pending)
            else:
                self._removals.settle(None, self._catalogs.known(), keys)
                self._records.pending.delete(pending)
            raise
        self._records.catalog.change("clusters")
        self._follow(keys, before, pending, held=held)
        return token

    def label(
        self, key: str, labels: Mapping[str, str | None], *, overwrite: bool = True
    ) -> Cluster:
        """Set labels of a cluster, or take away those that are None; return it as it is now.

        What is set is no classifier's from then on.

        Raises:
            ConflictError: a label has another value, and is not to be overwritten.
            MissingError: there is no such cluster.
        """

        def labelled(old: Cluster) -> Cluster:
            if not overwrite:
                refuse_overwrite(f"label cluster '{key}'", old.labels, labels)
            given = {name: each for name, each in old.given.items() if name not in labels}
            return replace(old, labels=_merged(old.labels, labels), given=given)

        return self._alter(key, "label", labelled)

    def annotate(
        self,
        key: str,
        annotations: Mapping[str, str | None],
        data: Mapping[str, str | None] = _NOTHING,
        *,
        overwrite: bool = True,
    ) -> Cluster:
        """Set annotations and data of a cluster, or take away those that are None.

        Templates read them as `.Cluster.metadata.annotations` and `.Cluster.spec.data`.

        Raises:
            ConflictError: a key has another value, and is not to be overwritten.
            InvalidError: that is too much; nothing is changed.
            MissingError: there is no such cluster.
        """

        def annotated(old: Cluster) -> Cluster:
            if not overwrite:
                action = f"annotate cluster '{key}'"
                refuse_overwrite(action, old.annotations, annotations)
                refuse_overwrite(action, old.spec.get("data") or {}, data)
            told = _merged(old.spec.get("data") or {}, data)
            spec = {**old.spec, "data": told} if told or "data" in old.spec else old.spec
            return replace(old, annotations=_merged(old.annotations, annotations), spec=spec)

        return self._alter(key, "annotate", annotated)

    def specify(self, key: str, verb: str, fields: Mapping[str, Any]) -> Cluster:
        """Set fields of a cluster's spec, or take away those that are None, as a `verb` says.

        Raises:
            MissingError: there is no such cluster.
        """

        def specified(old: Cluster) -> Cluster:
            return replace(old, spec=_merged(old.spec, fields))

        return self._alter(key, verb, specified)

    @until_written("{verb} '{key}'")
    def _alter(self, key: str, verb: str, change: Callable[[Cluster], Cluster]) -> Cluster:
        kept = self._cluster(key, verb)
        cluster = change(kept.value)
        # A cluster that is registered again meanwhile must not get the old credentials back.
        self.register(cluster, expect=kept.token)
        return cluster

    def deregister(self, key: str) -> Cluster:
        """Forget a cluster; nothing is removed in it, what others got because of it is.

        Raises:
            MissingError: there is no such cluster.
        """
        cluster = self._cluster(key, "deregister").value
        before = self._catalogs.known()
        pending = self._begin([("Cluster", cluster.namespace, cluster.name)])
        self._forget(key)
        self._records.catalog.change("clusters")
        self._follow([("Cluster", cluster.namespace, cluster.name)], before, pending)
        return cluster

    def _forget(self, key: str) -> None:
        """Delete a cluster, and tell the profiles there, of which some only wait to leave it."""
        self._records.forget_cluster(key)
        self._forget_traces(key)

    def _forget_traces(self, key: str) -> None:
        self._consequences.tell_profiles(key)
        self._records.forget_traces(key)

    def _cluster(self, key: str, verb: str) -> Stored[Cluster]:
        kept = self._records.clusters.get(key)
        if kept is None:
            raise MissingError(
                f"cannot {verb} cluster '{key}': it is not registered;"
                " `bellhop get clusters` lists those that are"
            )
        return kept

    # What is held -----------------------------------------------------------------------------

    def release(self, change: str, only: Collection[Rule] | None = None) -> list[HeldRemoval]:
        """Remove the add-ons that are held of a change, of `only` some rules; return what they are.

        Raises:
            MissingError: nothing is held of it.
        """
        every = (each.value for each in self._records.removals.all())
        found = [each for each in every if each.change == change]
        found = [each for each in found if only is None or each.rule in only]
        if not found:
            raise MissingError(
                f"cannot release change '{change}': nothing of it is held; `bellhop get held` lists"
                " what is"
            )
        rules = [each.rule for each in found]
        pending = self._begin([], **{_RELEASED: change, _RULES: [list(each) for each in rules]})
        self._let_go(pending, change, rules)
        return found

    def _let_go(self, pending: str, change: str, rules: Iterable[Rule]) -> None:
        """Hold nothing of a change any more, and have deploy remove it."""
        rules = list(rules)
        for rule in rules:
            kept = self._records.removals.get(rule)
            if kept and kept.value.change == change:
                # Whoever adds to it meanwhile keeps its change, and is released with it.
                self._records.removals.delete(rule)
        self._consequences.withdraw(self._catalogs.known(), rules)
        self._records.pending.delete(pending)

    def foresee(
        self, declarations: Iterable[Declaration], deleted: Iterable[Key] = ()
    ) -> RemovalPlan:
        """Return what would be removed if objects were applied, and others deleted."""
        before = self._catalogs.known()
        changed: dict[DeclarationKey, Declaration | None] = {new.key: new for new in declarations}
        changed |= {DeclarationKey(*key): None for key in deleted}
        keys = list(_removing(changed))
        return self._removals.plan(before, _changed(before, changed), keys)

    def rehearse_catalog(self, declarations: Iterable[Declaration]) -> Catalog:
        """Return the catalog as it would be if objects were applied."""
        return _changed(self._catalogs.known(), {new.key: new for new in declarations})

    def _hold(
        self,
        before: Catalog,
        changed: Mapping[DeclarationKey, Declaration | None],
        verb: str,
        created: Collection[DeclarationKey] = (),
    ) -> Sequence[HeldRemoval]:
        """Hold what a change is about to remove, if that is too much at once.

        What is `created` removes nothing, but what changes with it may name it.
        """
        self.held = ()
        if keys := [key for key in _removing(changed) if key not in created]:
            first, *others = keys
            more = f" and {len(others)} more were" if others else " was"
            cause, after = f"{first}{more} {verb}", _changed(before, changed)
            self.held = self._removals.hold(before, after, keys, cause, self._also)
        return self.held

    def relabelled(
        self, key: str, labels: Mapping[str, str | None], *, overwrite: bool = True
    ) -> Cluster:
        """Return a cluster as it would be with other labels.

        Raises:
            ConflictError: a label has another value, and is not to be overwritten.
            MissingError: there is no such cluster.
        """
        old = self._cluster(key, "label").value
        if not overwrite:
            refuse_overwrite(f"label cluster '{key}'", old.labels, labels)
        new = replace(old, labels=_merged(old.labels, labels))
        new.refuse_too_much()
        return new

    def hold_also(self, rules: Iterable[Rule]) -> None:
        """Hold what later changes remove of some rules: all of one command take too much."""
        self._also = frozenset(rules)

    def foresee_clusters(self, clusters: Iterable[Cluster]) -> RemovalPlan:
        """Return what would be removed if registered clusters were as given, all at once."""
        before = self._catalogs.known()
        new = {each.key: each for each in clusters if each.key in before.clusters}
        after = before.with_clusters(
            before.revision, {**before.clusters, **new}.values(), before.choices
        )
        keys = [("Cluster", each.namespace, each.name) for each in new.values()]
        return self._removals.plan(before, after, keys)

    def foresee_deregistration(self, *keys: str) -> RemovalPlan:
        """Return what would be removed from other clusters if some left the fleet, in this order.

        Raises:
            MissingError: one of them is not registered.
        """
        for key in keys:
            self._cluster(key, "deregister")
        return self._removals.plan_deregistration(self._catalogs.known(), keys)

    def _hold_relabelled(self, before: Catalog, new: Cluster) -> Sequence[HeldRemoval]:
        """Hold what the labels that a cluster is about to have remove, if that is too much."""
        self.held = ()
        old = before.clusters.get(new.key)
        if old and old.labels != new.labels:
            keys = [("Cluster", new.namespace, new.name)]
            cause = f"the labels of cluster '{new.key}' were changed"
            after = _with_cluster(before, new)
            self.held = self._removals.hold(before, after, keys, cause, self._also)
        return self.held

    # What follows -----------------------------------------------------------------------------

    def resume(self) -> int:
        """Finish changes that were begun and abandoned; return how many there were."""
        abandoned = self._records.pending.abandoned()
        upgrades = {name: each for name, each in abandoned.items() if UPGRADED_FROM in each}
        for name, change in abandoned.items():
            if _RELEASED in change:
                rules = [(trigger, profile) for trigger, profile in change[_RULES]]
                self._let_go(name, change[_RELEASED], rules)
            elif name not in upgrades:
                self._finish(name, [(key[0], key[1], key[2]) for key in change["keys"]])
        if upgrades:
            self._finish_upgrades(upgrades)
        return len(abandoned)

    def _finish(self, pending: str, keys: Sequence[Key]) -> None:
        """Publish all that may follow from a change of which no more is known than its objects."""
        for kind, namespace, cluster in keys:
            if kind == "Cluster" and self._records.clusters.get(f"{namespace}/{cluster}") is None:
                self._forget(f"{namespace}/{cluster}")
        self._records.catalog.change("declared", "clusters", keys=keys)
        self._follow(keys, None, pending)

    def _finish_upgrades(self, upgrades: Mapping[str, Mapping[str, Any]]) -> None:
        """Have what may read the versions of clusters made again, however many at once.

        What was chosen, placed and swept does not depend on them.
        """
        self._records.catalog.change("clusters")
        after = self._catalogs.known()
        clusters = dict(after.clusters)
        for change in upgrades.values():
            [(_, namespace, name)] = change["keys"]
            new = after.clusters.get(f"{namespace}/{name}")
            # Of several versions since then any other one than that of now.
            if new and change[UPGRADED_FROM] != new.kubernetes:
                clusters[new.key] = replace(new, kubernetes=change[UPGRADED_FROM])
        before = after.with_clusters(after.revision, clusters.values(), after.choices)
        upgraded = [each for key, each in after.clusters.items() if clusters[key] != each]
        keys = [("Cluster", each.namespace, each.name) for each in upgraded]
        self._consequences.follow(keys, before, after)
        for pending in upgrades:
            self._records.pending.delete(pending)

    def _begin(self, keys: Iterable[tuple[str, str, str]], **more: Any) -> str:
        self._records.moves.refuse()
        name = uuid.uuid4().hex
        self._records.pending.put(name, {"keys": [list(key) for key in keys], **more})
        return name

    def _follow(
        self,
        keys: Sequence[Key],
        before: Catalog | None,
        pending: str,
        after: Catalog | None = None,
        held: Sequence[HeldRemoval] = (),
    ) -> None:
        """Publish what follows from a change, have sets choose anew, and strike the change out."""
        after = after or self._catalogs.known()
        self._removals.settle(before, after, keys, held)
        self._consequences.follow(keys, before, after)
        if before is None or before.choosing or after.choosing:
            chosen = self._choosing.settle()
            self.held = [*self.held, *(each for each in chosen if each not in self.held)]
        self._records.pending.delete(pending)


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


def _with_cluster(catalog: Catalog, new: Cluster) -> Catalog:
    """Return a catalog as it would be with a cluster that changed."""
    clusters = {**catalog.clusters, new.key: new}.values()
    return catalog.with_clusters(catalog.revision, clusters, catalog.choices)


def _removing(
    changed: Mapping[DeclarationKey, Declaration | None],
) -> dict[DeclarationKey, Declaration | None]:
    """Return the rules whose change may by itself take add-ons from clusters.

    A changed EventSource ends matches instead, as objects are evaluated.
    """
    found = changed.items()
    deciding = {key: new for key, new in found if key.kind in (*TRIGGERS, *PROFILES, *SETS)}
    deleted = {key: new for key, new in found if key.kind == "EventSource" and new is None}
    return deciding | deleted


def _merged(old: Mapping[str, T], changes: Mapping[str, T | None]) -> dict[str, T]:
    merged = {**old, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _annotated(manifest: Manifest, changes: Mapping[str, str | None]) -> Manifest:
    """Return a manifest with other annotations; without any it has no place for them."""
    metadata = dict(manifest.get("metadata") or {})
    merged = _merged(metadata.pop("annotations", None) or {}, changes)
    return {**manifest, "metadata": {**metadata, **({"annotations": merged} if merged else {})}}


def _change(new: Declaration, old: Manifest | None) -> Change:
    if old is None:
        return "created"
    return "unchanged" if same(old, new.written) else "configured"
