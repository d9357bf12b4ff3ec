"""Writer of clusters: registered, labelled, annotated and deregistered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.declarations.change import ChangeWriter
from bellhop.declarations.deletion_guard import RemovalPlan
from bellhop.declarations.records import HeldRemoval
from bellhop.errors import ConflictError, MissingError, StaleError
from bellhop.ports.store import ANY
from bellhop.state.cluster import Cluster
from bellhop.state.concurrency import until_written
from bellhop.state.table import Stored

T = TypeVar("T")

_NOTHING: Mapping[str, str | None] = {}


class ClusterWriter(ChangeWriter):
    """Changes clusters, and publishes the effects on what is deployed to them."""

    def register(self, cluster: Cluster, *, expect: str | None = ANY) -> str:
        """Add a cluster, or replace one that is registered again, and have it resynced.

        Return the token of its record, which must be `expect` before, if that is given.

        Raises:
            InvalidError: it has too many labels; nothing is changed.
            StaleError: another writer has written the cluster meanwhile; nothing is changed.
        """
        cluster.refuse_too_much()
        before = self._catalogs.known()
        keys = [("Cluster", cluster.namespace, cluster.name)]
        pending = self._note_change(keys)
        new = self._records.clusters.get(cluster.key) is None
        held = self._hold_relabelled(before, cluster)
        if new:
            # A killed deregistration may have left traces. They are deleted before the write:
            # after it a worker may already deploy to the new cluster.
            self._forget_traces(cluster.key)
        try:
            token = self._records.clusters.put(cluster, expect=expect)
        except StaleError:
            if new:
                # Deployments after the other write may have been deleted as traces: all effects are
                # published again, also after a death.
                self._publish_effects(keys, None, pending)
            else:
                self._removals.settle(None, self._catalogs.known(), keys)
                self._records.pending.delete(pending)
            raise
        self._records.catalog.change("clusters")
        self._publish_effects(keys, before, pending, held=held)
        return token

    def label(
        self, key: str, labels: Mapping[str, str | None], *, overwrite: bool = True
    ) -> Cluster:
        """Set labels of a cluster, or remove those whose value is None; return the new record.

        A label that is set here does not belong to a classifier any more.

        Raises:
            ConflictError: a label has another value, and is not to be overwritten.
            MissingError: there is no such cluster.
        """

        def labelled(old: Cluster) -> Cluster:
            if not overwrite:
                refuse_overwrite(f"label cluster '{key}'", old.labels, labels)
            given = {name: each for name, each in old.given.items() if name not in labels}
            return replace(old, labels=merge(old.labels, labels), given=given)

        return self._update(key, "label", labelled)

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
            merged = merge(old.spec.get("data") or {}, data)
            spec = {**old.spec, "data": merged} if merged or "data" in old.spec else old.spec
            return replace(old, annotations=merge(old.annotations, annotations), spec=spec)

        return self._update(key, "annotate", annotated)

    def specify(
        self,
        key: str,
        verb: str,
        fields: Mapping[str, Any],
        annotations: Mapping[str, str | None] = _NOTHING,
    ) -> Cluster:
        """Set fields of a cluster's spec, and annotations, or take away those that are None.

        Raises:
            MissingError: there is no such cluster.
        """

        def specified(old: Cluster) -> Cluster:
            marks = merge(old.annotations, annotations)
            return replace(old, spec=merge(old.spec, fields), annotations=marks)

        return self._update(key, verb, specified)

    def configure(self, key: str, mode: Literal["", "on", "preview", "taken-over"]) -> Cluster:
        """Have a cluster hold the configuration, or preview it, or by an empty mode no longer.

        Raises:
            MissingError: there is no such cluster.
        """
        return self._update(key, "configure", lambda old: replace(old, configuration=mode))

    def relabelled(
        self, key: str, labels: Mapping[str, str | None], *, overwrite: bool = True
    ) -> Cluster:
        """Return a cluster as it would be with other labels.

        Raises:
            ConflictError: a label has another value, and is not to be overwritten.
            MissingError: there is no such cluster.
        """
        old = self._read_cluster(key, "label").value
        if not overwrite:
            refuse_overwrite(f"label cluster '{key}'", old.labels, labels)
        new = replace(old, labels=merge(old.labels, labels))
        new.refuse_too_much()
        return new

    def deregister(self, key: str) -> Cluster:
        """Forget a cluster; nothing is removed in it, what others got because of it is.

        Raises:
            MissingError: there is no such cluster.
        """
        cluster = self._read_cluster(key, "deregister").value
        before = self._catalogs.known()
        pending = self._note_change([("Cluster", cluster.namespace, cluster.name)])
        self._forget(key)
        self._records.catalog.change("clusters")
        self._publish_effects([("Cluster", cluster.namespace, cluster.name)], before, pending)
        return cluster

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
            self._read_cluster(key, "deregister")
        return self._removals.plan_deregistration(self._catalogs.known(), keys)

    @until_written("{verb} '{key}'")
    def _update(self, key: str, verb: str, change: Callable[[Cluster], Cluster]) -> Cluster:
        kept = self._read_cluster(key, verb)
        cluster = change(kept.value)
        # A cluster that is registered again meanwhile must not get the old credentials back.
        self.register(cluster, expect=kept.token)
        return cluster

    def _hold_relabelled(self, before: Catalog, new: Cluster) -> Sequence[HeldRemoval]:
        """Hold what the labels that a cluster is about to have remove, if that is too much."""
        self.held = ()
        old = before.clusters.get(new.key)
        if old and old.labels != new.labels:
            keys = [("Cluster", new.namespace, new.name)]
            cause = f"the labels of cluster '{new.key}' were changed"
            after = before.with_cluster(new)
            self.held = self._removals.hold(before, after, keys, cause, self._also)
        return self.held

    def _read_cluster(self, key: str, verb: str) -> Stored[Cluster]:
        kept = self._records.clusters.get(key)
        if kept is None:
            raise MissingError(
                f"cannot {verb} cluster '{key}': it is not registered;"
                " `bellhop get clusters` lists those that are"
            )
        return kept


def merge(old: Mapping[str, T], changes: Mapping[str, T | None]) -> dict[str, T]:
    """Return a mapping with changed values; keys whose new value is None are removed."""
    merged = {**old, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def refuse_overwrite(
    action: str, there: Mapping[str, str], changes: Mapping[str, str | None]
) -> None:
    """Refuse changes that give a key another value than it has; `action` begins the sentence.

    Raises:
        ConflictError: naming the first such key with its value.
    """
    for key, value in changes.items():
        if value is not None and there.get(key, value) != value:
            raise ConflictError(
                f"cannot {action}: '{key}' already has the value '{there[key]}'; replace it with"
                " --overwrite"
            )
