"""Declare: what users apply and delete, and clusters that come, change and go.

Every change is noted before it is made and struck out after all that follows from it is
published; what a crash leaves in between is made good by `resume`, which the schedule calls.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Literal

from bellhop.engine.catalog import Catalog
from bellhop.engine.difference import TRIGGERS, Key, Touched, difference
from bellhop.engine.pacing import renewal_timer, spread, sweep_timer
from bellhop.errors import InvalidError, MissingError, StaleError
from bellhop.messages import (
    Apply,
    Envelope,
    Instantiate,
    Publisher,
    Renew,
    Resolve,
    Sweep,
    Tidy,
)
from bellhop.model.kinds import Declaration, DeclarationKey, EventTrigger, of
from bellhop.model.record import Cluster, Profile, WatchedKind
from bellhop.ports.store import ANY
from bellhop.records import Kept, Records
from bellhop.records.catalogs import Catalogs
from bellhop.records.declared import Manifest
from bellhop.settings import Settings
from bellhop.stages.reread import applied_again

_NOTHING: Mapping[str, str | None] = {}

Change = Literal["created", "configured", "unchanged", "deleted"]

_RETRIES = 8
_PAGE = 500
"""Messages published at a time: a declaration may touch every profile of the fleet."""

_WORK = timedelta(minutes=2)
"""Longer than work on one message takes."""

_REGISTERING = timedelta(minutes=1)
"""Longer than it takes to register a cluster, from its record on."""

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

    def __init__(
        self, records: Records, catalogs: Catalogs, publisher: Publisher, settings: Settings
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._settings = settings

    # Manifests --------------------------------------------------------------------------------

    def apply(self, declarations: Sequence[Declaration]) -> list[Declared]:
        """Store objects that are all valid; those that are as they were cost nothing.

        Raises:
            InvalidError: an object cannot become what it is to be; then none is stored.
        """
        results = self.rehearse(declarations)
        changed = [
            new
            for new, result in zip(declarations, results, strict=True)
            if result.change != "unchanged"
        ]
        if changed:
            before = self._catalogs.known()
            written = {new.key: (new.manifest(), new) for new in changed}
            pending = self._begin(written)
            for key, (manifest, _) in written.items():
                self._records.manifests.put(*key, manifest)
            self._records.catalog.change("declared", keys=list(written))
            self._follow(list(written), before, self._catalogs.known(written))
            self._records.pending.delete(pending)
        return results

    def rehearse(self, declarations: Sequence[Declaration]) -> list[Declared]:
        """Say what would become of objects that are all valid, and store nothing.

        Raises:
            InvalidError: an object cannot become what it is to be.
        """
        beside = {new.key for new in declarations}
        results = []
        for new in declarations:
            old = self._old(new)
            self._refuse_change(new, old, beside)
            results.append(Declared(*new.key, _change(new, old)))
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
        self._records.catalog.change("declared", keys=keys)
        self._follow(keys, before)
        self._records.pending.delete(pending)
        return [Declared(*key, "deleted") for key in keys]

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
                    " and both are one kind; delete it first"
                )

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
        pending = self._begin([("Cluster", cluster.namespace, cluster.name)])
        is_new = self._records.clusters.get(cluster.key) is None
        try:
            token = self._records.clusters.put(cluster, expect=expect)
        except StaleError:
            self._records.pending.delete(pending)
            raise
        if is_new:
            # What a killed deregistration left is not about this cluster. After the write, which
            # only one of two succeeds in; before the gate is open, and anything new is kept.
            self._forget_traces(cluster.key)
        self._records.catalog.change("clusters")
        self._follow([("Cluster", cluster.namespace, cluster.name)], before)
        self._records.pending.delete(pending)
        return token

    def label(self, key: str, labels: Mapping[str, str | None]) -> Cluster:
        """Set labels of a cluster, or take away those that are None; return it as it is now.

        Raises:
            MissingError: there is no such cluster.
        """
        return self._alter(
            key, "label", lambda old: replace(old, labels=_merged(old.labels, labels))
        )

    def annotate(
        self,
        key: str,
        annotations: Mapping[str, str | None],
        data: Mapping[str, str | None] = _NOTHING,
    ) -> Cluster:
        """Set annotations and data of a cluster, or take away those that are None.

        Templates read them as `.Cluster.metadata.annotations` and `.Cluster.spec.data`.

        Raises:
            InvalidError: that is too much; nothing is changed.
            MissingError: there is no such cluster.
        """

        def annotated(old: Cluster) -> Cluster:
            told = _merged(old.spec.get("data") or {}, data)
            spec = {**old.spec, "data": told} if told or "data" in old.spec else old.spec
            return replace(old, annotations=_merged(old.annotations, annotations), spec=spec)

        return self._alter(key, "annotate", annotated)

    def _alter(self, key: str, verb: str, change: Callable[[Cluster], Cluster]) -> Cluster:
        for _ in range(_RETRIES):
            kept = self._cluster(key, verb)
            cluster = change(kept.value)
            with suppress(StaleError):
                # Whoever registers it anew meanwhile must not get the old credentials back.
                self.register(cluster, expect=kept.token)
                return cluster
        raise StaleError(f"cannot {verb} '{key}': others change the cluster all the time")

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
        self._follow([("Cluster", cluster.namespace, cluster.name)], before)
        self._records.pending.delete(pending)
        return cluster

    def _forget(self, key: str) -> None:
        """Delete a cluster, and tell the profiles there, of which some only wait to leave it."""
        self._records.forget_cluster(key)
        self._forget_traces(key)

    def _forget_traces(self, key: str) -> None:
        self._publish(self._applied_again(key, ()))
        self._records.forget_traces(key)

    def _cluster(self, key: str, verb: str) -> Kept[Cluster]:
        kept = self._records.clusters.get(key)
        if kept is None:
            raise MissingError(
                f"cannot {verb} cluster '{key}': it is not registered;"
                " `bellhop get clusters` lists those that are"
            )
        return kept

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
            self._records.catalog.change("declared", "clusters", keys=keys)
            self._follow(keys, None)
            self._records.pending.delete(name)
        return len(abandoned)

    def _begin(self, keys: Iterable[tuple[str, str, str]]) -> str:
        self._records.moves.refuse()
        name = uuid.uuid4().hex
        self._records.pending.put(name, {"keys": [list(key) for key in keys]})
        return name

    def _follow(
        self, keys: Sequence[Key], before: Catalog | None, after: Catalog | None = None
    ) -> None:
        """Publish all that follows from changed objects; without a `before`, all that may."""
        after = after or self._catalogs.known()
        touched = difference(before, after, keys)
        self._open_gates(after, touched.gates)
        for key in sorted(touched.swept):
            if key in after.clusters:
                self._keep_sweeping(key)
            else:
                self._tidy_later(key)
        for kind, namespace, name in keys:
            if kind == "Cluster" and f"{namespace}/{name}" in after.clusters:
                self._keep_renewing(after.clusters[f"{namespace}/{name}"])
        self._publish(self._following(after, touched))

    def _publish(self, messages: Iterable[Envelope]) -> None:
        """Publish messages in pages, as they are read from the records, however many."""
        rest = iter(messages)
        while page := list(islice(rest, _PAGE)):
            self._publisher.publish(page)

    def _following(self, after: Catalog, touched: Touched) -> Iterator[Envelope]:
        """Yield what asks for all that is touched."""
        for key in sorted(touched.swept & set(after.clusters)):
            yield Sweep(key, full=key in touched.anew)
        for trigger, cluster in sorted(touched.instantiated, key=str):
            yield from self._instantiated(after, trigger, cluster)
        for trigger, destination in sorted(touched.placed):
            yield from self._placed(trigger, destination)
        yield from (Resolve(name) for name in sorted(touched.resolved))
        yield from applied_again(self._records, *touched.reread)
        for destination in sorted(touched.relabelled):
            came = destination in touched.anew and destination in after.clusters
            yield from self._applied_again(
                destination, self._naming(after, destination) if came else ()
            )

    def _keep_sweeping(self, cluster: str) -> None:
        name = sweep_timer(cluster)
        if self._records.timers.get(name) is None:
            at = self._records.clock.now() + spread(name, self._settings.sweep_interval)
            self._records.timers.set(name, at, Sweep(cluster).message().body)

    def _keep_renewing(self, cluster: Cluster) -> None:
        """Have it looked at what a cluster that rings needs next: its record may say another time.

        Soon enough to finish a registration that dies; whoever looks sets the time after that.
        """
        if not cluster.forwarder and not cluster.abandoned:
            return
        name, at = renewal_timer(cluster.key), self._records.clock.now() + _REGISTERING
        kept = self._records.timers.get(name)
        # Written anew in any case: who has looked at an older record is to notice.
        at = min(at, kept.value.at) if kept else at
        self._records.timers.set(name, at, Renew(cluster.key).message().body)

    def _tidy_later(self, cluster: str) -> None:
        """Have the traces of a cluster deleted that those leave who are at work on it now."""
        self._records.timers.cancel(sweep_timer(cluster))
        self._records.timers.cancel(renewal_timer(cluster))
        at = self._records.clock.now() + _WORK
        self._records.timers.set(f"tidy/{cluster}", at, Tidy(cluster).message().body)

    def _instantiated(
        self, catalog: Catalog, name: str, cluster: str | None
    ) -> Iterator[Instantiate]:
        """Ask for a trigger in one cluster, or wherever it is in force or has left profiles."""
        clusters = (
            {cluster} if cluster else {each.cluster for each in self._records.profiles.heads(name)}
        )
        if cluster is None and name in catalog.triggers:
            clusters |= {
                key
                for key in catalog.clusters
                if catalog.source_of(catalog.triggers[name], key) is not None
            }
        return (Instantiate(name, each) for each in sorted(filter(None, clusters)))

    def _placed(self, trigger: str, destination: str) -> Iterator[Envelope]:
        """Ask for all profiles of a trigger that now selects a destination, or no longer does.

        Those that name it already may have named another cluster that had its name.
        """
        for each in self._records.profiles.heads(trigger):
            yield Instantiate(trigger, each.cluster, each.object)
            if each.may_name(destination):
                yield Apply(trigger, each.cluster, each.name, destination)

    def _applied_again(self, destination: str, profiles: Iterable[Profile]) -> Iterator[Apply]:
        """Ask for the profiles there, which may be rendered with its labels, and for others."""
        asked = {
            (each.trigger, each.source, each.profile)
            for each in self._records.outcomes.of(destination)
        }
        asked |= {(each.trigger, each.cluster, each.name) for each in profiles}
        for trigger, cluster, name in sorted(asked):
            yield Apply(trigger, cluster, name, destination)

    def _naming(self, catalog: Catalog, cluster: str) -> Iterator[Profile]:
        """Yield the profiles that name a cluster, for one that came.

        They may have named another one of its name, whose end they have not heard of; what was
        applied there is forgotten, and they would not be asked for again. `_placed` asks for those
        that select it by its labels.
        """
        heads = self._records.profiles
        labels = catalog.clusters[cluster].labels
        for trigger in catalog.triggers.values():
            if trigger.source_selector.matches(labels):
                found = heads.heads(trigger.name, cluster)
                yield from (each for each in found if each.may_name(cluster))
        yield from (each for each in heads.heads("") if each.may_name(cluster))

    def _open_gates(self, catalog: Catalog, clusters: Iterable[str]) -> None:
        """Let each cluster's kinds in; what discovery told of them before is kept."""
        for key in sorted(set(clusters) & set(catalog.clusters)):
            cluster = catalog.clusters[key]
            old = self._records.gates.known(key)
            plurals = {each.gvk: each.plural for each in old.value.kinds} if old else {}
            kinds = (WatchedKind(gvk, plurals.get(gvk, "")) for gvk in catalog.kinds_in(key))
            gate = cluster.gate(kinds, catalog.revision)
            if not old or replace(old.value, revision=gate.revision) != gate:
                self._records.gates.put(key, gate)


def _merged(old: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**old, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _change(new: Declaration, old: Manifest | None) -> Change:
    if old is None:
        return "created"
    return "unchanged" if old == new.manifest() else "configured"
