"""Classifier labels: given to clusters and removed again.

    a match or a selection changed ───────┐
    a resync ended, a manifest changed ───┼► settle ─┬─► the cluster is written, on condition
    a grace period is over ───────────────┘          │      └─► effects published ─► settle again
                                                     └► nothing to write: recorded for people

The cluster is evaluated again after each write, so the later of two concurrent writers sees both
changes. Nothing unknown counts as missing: a source that was not evaluated as it is now changes no
label. A label stays until the grace period is over, so that an object that is replaced, or
evaluated late, moves no add-on.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.api.classifier import Classifier
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.declarations.cluster_selection import SetSelector
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.declarations.fan_out import ChangeFanOut
from bellhop.declarations.records import HeldRemoval
from bellhop.errors import MissingError, StaleError
from bellhop.extras.classifiers.labels import give
from bellhop.extras.classifiers.records import Classification
from bellhop.state.cluster import Cluster
from bellhop.state.concurrency import until_settled
from bellhop.state.delays import classify_timer
from bellhop.state.messages import UpdateLabels
from bellhop.state.records import Records

GRACE = timedelta(seconds=30)
"""Time for which a label stays in a cluster that does not satisfy its classifier any more."""

_ROUNDS = 16


class LabelClassifier:
    """Keeps the labels right that classifiers give."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        fan_out: ChangeFanOut,
        selector: SetSelector,
        removals: RemovalGuard,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._fan_out = fan_out
        self._selector = selector
        self._removals = removals

    @until_settled("classify cluster '{cluster}'", _ROUNDS)
    def settle(self, cluster: str) -> bool:
        """Give a cluster the labels that it is to have by now, until nothing is to be written.

        Raises:
            StaleError: others change it all the time.
        """
        try:
            catalog = self._catalogs.current()
        except MissingError:
            # A missing catalog deletes nothing; a repair settles this, too.
            return True
        kept = self._records.clusters.get(cluster)
        if kept is None:
            return True
        found, staying = self._evaluate(catalog, kept.value)
        given = give(kept.value, catalog.classifiers, found.matching, staying)
        if given.cluster == kept.value:
            self._note(cluster, replace(found, lacks=given.lacks))
            return True
        with suppress(StaleError):
            # The catalog may be older than the cluster, whose change has its effects already.
            self._write(catalog.with_cluster(kept.value), given.cluster, kept.token)
        return False

    # Evaluation -------------------------------------------------------------------------------

    def _evaluate(self, catalog: Catalog, cluster: Cluster) -> tuple[Classification, set[str]]:
        """Ask each classifier; return also those that keep what they gave, and give no more."""
        results = {
            name: self._is_satisfied(catalog, cluster, each)
            for name, each in catalog.classifiers.items()
        }
        unknown = {name for name, holds in results.items() if holds is None}
        leaving = self._list_leaving(cluster, {name for name in results if results[name] is False})
        matching = sorted(name for name, holds in results.items() if holds)
        found = Classification(tuple(matching), tuple(sorted(unknown)), leaving)
        return found, unknown | leaving.keys()

    def _is_satisfied(
        self, catalog: Catalog, cluster: Cluster, classifier: Classifier
    ) -> bool | None:
        """Return whether a cluster satisfies a classifier; None if that is unknown."""
        admitted = classifier.admits(cluster.kubernetes)
        if not admitted or not classifier.sources:
            return admitted
        evaluated = self._records.health.get(cluster.key).value.judgement
        names = [each.name for each in classifier.sources]
        if any(evaluated.get(each) != catalog.digest(each) for each in names):
            return None
        if classifier.sources[0].aggregation:
            return self._selects(cluster.key, names[0])
        return all(self._matches(cluster.key, each) for each in names)

    def _selects(self, cluster: str, source: str) -> bool | None:
        try:
            kept = self._records.selections.get(cluster, source)
        except MissingError:
            return None
        return bool(kept.value.selected) if kept and kept.value.made else None

    def _matches(self, cluster: str, source: str) -> bool:
        return any(True for _ in self._records.matches.marks(cluster, source))

    def _list_leaving(self, cluster: Cluster, missing: set[str]) -> dict[str, datetime]:
        """Return since when those are not satisfied whose labels stay for a while still."""
        giving = missing & {*cluster.given.values()}
        if not giving:
            return {}
        now = self._records.clock.now()
        known = self._records.classified.get(cluster.key).value.leaving
        since = {name: min(known.get(name, now), now) for name in giving}
        return {name: at for name, at in since.items() if now - at < GRACE}

    # Writes -----------------------------------------------------------------------------------

    def _note(self, cluster: str, found: Classification) -> None:
        """Record the classification, and set a timer for the end of the grace period."""
        if found.leaving:
            over, body = min(found.leaving.values()) + GRACE, UpdateLabels(cluster).message().body
            self._records.timers.set(classify_timer(cluster), over, body)
        kept = self._records.classified.get(cluster)
        if found != kept.value:
            self._records.classified.put(cluster, found, expect=kept.token)

    def _hold(self, before: Catalog, new: Cluster) -> list[HeldRemoval]:
        """Hold what a cluster would lose by its labels, if many clusters lose as much just now."""
        after = before.with_cluster(new)
        cause = "labels that Classifiers give were taken from clusters"
        return self._removals.hold_one_of_many(before, after, new.key, cause)

    def _write(self, before: Catalog, cluster: Cluster, token: str) -> None:
        """Write a cluster's labels and publish the effects.

        Raises:
            StaleError: another writer has written it meanwhile; nothing is changed.
        """
        key = ("Cluster", cluster.namespace, cluster.name)
        pending = uuid.uuid4().hex
        self._records.pending.put(pending, {"keys": [list(key)]})
        held = self._hold(before, cluster)
        try:
            self._records.clusters.put(cluster, expect=token)
        except StaleError:
            self._records.pending.delete(pending)
            raise
        self._records.catalog.change("clusters")
        after = self._catalogs.known()
        self._removals.settle(before, after, [key], held)
        self._fan_out.publish_effects([key], before, after)
        if before.choosing:
            self._selector.settle()
        self._records.pending.delete(pending)
