"""Declare: what users apply and delete, and clusters that come, change and go.

Every change is noted before it is made and struck out after all that follows from it is
published; what a crash leaves in between is made good by `resume`, which the schedule calls.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from bellhop.engine.catalog import Catalog
from bellhop.errors import InvalidError, MissingError
from bellhop.model.kinds import EventTrigger, Kind, KindKey, PolicyRef, of
from bellhop.model.names import is_template
from bellhop.model.record import Cluster, Gate, WatchedKind
from bellhop.ports.queue import Message, Queue
from bellhop.records import Records, messages
from bellhop.records.catalogs import Catalogs

Change = Literal["created", "configured", "unchanged", "deleted"]

_TRIGGERS = ("EventTrigger", "EventBasedAddOn")
_HOLDERS = ("ConfigMap", "Secret")
_ABANDONED = timedelta(seconds=30)
"""A change noted longer ago than this belongs to nobody who is still at it."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What became of one object that a user applied or deleted."""

    kind: str
    namespace: str
    name: str
    change: Change


class Declare:
    """Changes what users declared, and tells the stages."""

    def __init__(self, records: Records, catalogs: Catalogs, deploy: Queue, sweep: Queue) -> None:
        self._records = records
        self._catalogs = catalogs
        self._deploy = deploy
        self._sweep = sweep

    # Manifests --------------------------------------------------------------------------------

    def apply(self, kinds: Sequence[Kind]) -> list[Declared]:
        """Store objects that are all valid; those that are as they were cost nothing.

        Raises:
            InvalidError: an object cannot become what it is to be; then none is stored.
        """
        olds = [self._old(kind) for kind in kinds]
        for kind, old in zip(kinds, olds, strict=True):
            self._refuse_change(kind, old, {each.key for each in kinds})
        results = [
            Declared(*kind.key, _change(kind, old)) for kind, old in zip(kinds, olds, strict=True)
        ]
        changed = [
            kind
            for kind, result in zip(kinds, results, strict=True)
            if result.change != "unchanged"
        ]
        if changed:
            with_before = self._catalogs.known()
            pending = self._begin([kind.key for kind in changed])
            for kind in changed:
                self._records.manifests.put(*kind.key, kind.manifest())
            self._records.catalog.raise_revision()
            self._follow([kind.key for kind in changed], with_before)
            self._records.pending.delete(pending)
        return results

    def delete(self, keys: Iterable[tuple[str, str, str]]) -> list[Declared]:
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
        for key in keys:
            self._records.manifests.delete(*key)
        self._records.catalog.raise_revision()
        self._follow(keys, before)
        self._records.pending.delete(pending)
        return [Declared(*key, "deleted") for key in keys]

    def _old(self, kind: Kind) -> Kind | None:
        try:
            kept = self._records.manifests.get(*kind.key)
        except MissingError:
            # What was declared is lost: declaring it again is the cure.
            return None
        return of(kept.value) if kept else None

    def _refuse_change(self, kind: Kind, old: Kind | None, beside: set[KindKey]) -> None:
        if not isinstance(kind, EventTrigger):
            return
        if isinstance(old, EventTrigger):
            kind.refuse_change(old)
        for other in _TRIGGERS:
            twin = KindKey(other, "", kind.name)
            if other != kind.kind and (twin in beside or self._records.manifests.has(*twin)):
                raise InvalidError(
                    f"cannot apply {kind.kind} '{kind.name}': there is an {other} of that name,"
                    " and both are one kind; delete it first"
                )

    # Clusters -----------------------------------------------------------------------------------

    def register(self, cluster: Cluster) -> None:
        """Add a cluster, or take over one registered again, and have it swept."""
        before = self._catalogs.known()
        pending = self._begin([("Cluster", cluster.namespace, cluster.name)])
        if self._records.clusters.get(cluster.key) is None:
            # What a killed deregistration left is not about this cluster.
            self._forget(cluster.key)
        self._records.clusters.put(cluster)
        self._records.catalog.raise_revision()
        self._follow([("Cluster", cluster.namespace, cluster.name)], before)
        self._records.pending.delete(pending)

    def label(self, key: str, labels: Mapping[str, str | None]) -> Cluster:
        """Set labels of a cluster, or take away those that are None; return it as it is now.

        Raises:
            MissingError: there is no such cluster.
        """
        cluster = self._cluster(key, "label")
        merged = {**cluster.labels, **labels}
        kept = {name: value for name, value in merged.items() if value is not None}
        cluster = replace(cluster, labels=kept)
        self.register(cluster)
        return cluster

    def deregister(self, key: str) -> Cluster:
        """Forget a cluster; nothing is removed in it, what others got because of it is.

        Raises:
            MissingError: there is no such cluster.
        """
        cluster = self._cluster(key, "deregister")
        before = self._catalogs.known()
        pending = self._begin([("Cluster", cluster.namespace, cluster.name)])
        self._forget(key)
        self._records.catalog.raise_revision()
        self._follow([("Cluster", cluster.namespace, cluster.name)], before)
        self._records.pending.delete(pending)
        return cluster

    def _forget(self, key: str) -> None:
        """Delete a cluster, and tell the profiles there, of which some only wait to leave it."""
        self._records.forget_cluster(key)
        self._deploy.publish(
            [
                messages.apply(each.trigger, each.source, each.profile, key)
                for each in self._records.outcomes.of(key)
            ]
        )
        self._records.forget_traces(key)

    def _cluster(self, key: str, verb: str) -> Cluster:
        kept = self._records.clusters.get(key)
        if kept is None:
            raise MissingError(
                f"cannot {verb} cluster '{key}': it is not registered;"
                " `bellhop get clusters` lists those that are"
            )
        return kept.value

    # What follows -----------------------------------------------------------------------------

    def resume(self) -> int:
        """Finish changes that were begun and abandoned; return how many there were."""
        oldest = self._records.clock.now() - _ABANDONED
        abandoned = [row for row in self._records.pending.all() if row[2] < oldest]
        for name, change, _ in abandoned:
            keys = [(key[0], key[1], key[2]) for key in change["keys"]]
            for kind, namespace, cluster in keys:
                if (
                    kind == "Cluster"
                    and self._records.clusters.get(f"{namespace}/{cluster}") is None
                ):
                    self._forget(f"{namespace}/{cluster}")
            self._records.catalog.raise_revision()
            self._follow(keys, self._catalogs.known())
            self._records.pending.delete(name)
        return len(abandoned)

    def _begin(self, keys: Iterable[tuple[str, str, str]]) -> str:
        name = uuid.uuid4().hex
        self._records.pending.put(name, {"keys": [list(key) for key in keys]})
        return name

    def _follow(self, keys: Sequence[tuple[str, str, str]], before: Catalog) -> None:
        """Publish all that follows from changed objects, whatever they were and are."""
        after = self._catalogs.known()
        self._open_gates(after)
        swept: set[str] = set()
        deploy: dict[tuple[str, ...], Message] = {}
        for kind, namespace, name in keys:
            if kind == "Cluster":
                swept.add(f"{namespace}/{name}")
                triggers = {*before.triggers, *after.triggers}
                self._ask(deploy, after, triggers)
                self._resolve(deploy, {*before.profiles, *after.profiles})
                self._apply_again(deploy, triggers, f"{namespace}/{name}")
            elif kind in _HOLDERS:
                self._ask(deploy, after, _referring(after, kind, namespace, name))
                self._resolve(deploy, _profiles_referring(after, kind, namespace, name))
            elif kind == "ClusterProfile":
                self._resolve(deploy, {name})
            else:
                swept |= _concerned(before, kind, name) | _concerned(after, kind, name)
                self._ask(deploy, after, {name} if kind in _TRIGGERS else _naming(after, name))
        self._sweep.publish(
            [
                messages.sweep(key, full=True) if key in after.clusters else messages.tidy(key)
                for key in sorted(swept)
            ]
        )
        self._deploy.publish(list(deploy.values()))

    def _ask(
        self, deploy: dict[tuple[str, ...], Message], catalog: Catalog, triggers: Iterable[str]
    ) -> None:
        """Ask for triggers wherever they are in force or have left profiles."""
        for name in sorted(triggers):
            clusters = {profile.cluster for profile in self._records.profiles.heads(name)}
            trigger = catalog.triggers.get(name)
            if trigger:
                clusters |= {
                    key for key in catalog.clusters if catalog.source_of(trigger, key) is not None
                }
            for cluster in sorted(clusters):
                deploy[name, cluster] = messages.instantiate(name, cluster)

    def _resolve(self, deploy: dict[tuple[str, ...], Message], profiles: Iterable[str]) -> None:
        for name in sorted(profiles):
            deploy[name,] = messages.resolve(name)

    def _apply_again(
        self, deploy: dict[tuple[str, ...], Message], triggers: Iterable[str], cluster: str
    ) -> None:
        """Ask for all profiles there: labels may be read at deploy time, the cluster be anew."""
        for trigger in (*triggers, ""):
            for profile in self._records.profiles.heads(trigger):
                if cluster in (*profile.destinations, *profile.leaving):
                    deploy[cluster, profile.name] = messages.apply(
                        trigger, profile.cluster, profile.name, cluster
                    )

    def _open_gates(self, catalog: Catalog) -> None:
        """Let each cluster's kinds in; what discovery told of them before is kept."""
        for key, cluster in catalog.clusters.items():
            kept = self._records.gates.get(key)
            old = kept.value if kept else None
            plurals = {watched.gvk: watched.plural for watched in old.kinds} if old else {}
            kinds = tuple(WatchedKind(gvk, plurals.get(gvk, "")) for gvk in catalog.kinds_in(key))
            gate = Gate(cluster.token_digest, kinds, catalog.revision)
            if old is None or (old.token_digest, old.kinds) != (gate.token_digest, gate.kinds):
                self._records.gates.put(key, gate)


def _change(kind: Kind, old: Kind | None) -> Change:
    if old is None:
        return "created"
    return "unchanged" if old.manifest() == kind.manifest() else "configured"


def _concerned(catalog: Catalog, kind: str, name: str) -> set[str]:
    """Return the clusters where a source or trigger is in force."""
    return {
        cluster
        for cluster in catalog.clusters
        for source in catalog.sources_in(cluster)
        if (kind == "EventSource" and source == name)
        or (kind in _TRIGGERS and name in catalog.triggers_on(cluster, source))
    }


def _naming(catalog: Catalog, source: str) -> set[str]:
    """Return the triggers that may mean a source, whose name may be a template."""
    return {
        trigger.name
        for trigger in catalog.triggers.values()
        if trigger.event_source_name == source or is_template(trigger.event_source_name)
    }


def _referring(catalog: Catalog, kind: str, namespace: str, name: str) -> set[str]:
    return {
        trigger.name
        for trigger in catalog.triggers.values()
        if any(_may_name(ref, kind, namespace, name) for ref in trigger.policy_refs)
    }


def _profiles_referring(catalog: Catalog, kind: str, namespace: str, name: str) -> set[str]:
    return {
        profile.name
        for profile in catalog.profiles.values()
        if any(_may_name(ref, kind, namespace, name) for ref in profile.policy_refs)
    }


def _may_name(ref: PolicyRef, kind: str, namespace: str, name: str) -> bool:
    """Say whether a ref, whose names may be templates, can mean an object."""
    return ref.kind == kind and all(
        is_template(given) or given in allowed
        for given, allowed in ((ref.namespace, {namespace, ""}), (ref.name, {name}))
    )
