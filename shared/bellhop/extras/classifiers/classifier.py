"""Classifying: the labels that classifiers give a cluster, and take away again.

    a match changed, a selection was made ─┐
    a sweep ended, something was declared ─┼► settle ─┬─► the cluster is written, on condition
    a grace is over ───────────────────────┘          │      └─► what follows ─► settle again
                                                      └► nothing to write: noted for people

What is known of the cluster is looked at once more after each write, so of two who settle at once
the later sees what both did. Nothing is taken for missing of which nobody can say yet that it is:
a source that is not judged as it is written changes no label. And what is missing for a moment
only, since somebody replaces it, or since objects are judged one after the other, moves no add-on:
a label stays until the grace is over.
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
from bellhop.errors import MissingError, StaleError
from bellhop.extras.classifiers.labels import give
from bellhop.state.classification import Classification
from bellhop.state.concurrency import until_settled
from bellhop.state.delays import classify_timer
from bellhop.state.held_removal import HeldRemoval
from bellhop.state.messages import UpdateLabels
from bellhop.state.record import Cluster
from bellhop.state.records import Records

GRACE = timedelta(seconds=30)
"""How long a label stays in a cluster that does not satisfy its classifier any more."""

_ROUNDS = 16


class LabelClassifier:
    """Keeps the labels right that classifiers give."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        consequences: ChangeFanOut,
        choosing: SetSelector,
        removals: RemovalGuard,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._consequences = consequences
        self._choosing = choosing
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
            # What is not known is not taken for deleted; a repair settles this, too.
            return True
        kept = self._records.clusters.get(cluster)
        if kept is None:
            return True
        found, staying = self._judge(catalog, kept.value)
        given = give(kept.value, catalog.classifiers, found.matching, staying)
        if given.cluster == kept.value:
            self._note(cluster, replace(found, lacks=given.lacks))
            return True
        with suppress(StaleError):
            self._write(catalog, given.cluster, kept.token)
        return False

    # What is known ----------------------------------------------------------------------------

    def _judge(self, catalog: Catalog, cluster: Cluster) -> tuple[Classification, set[str]]:
        """Ask each classifier; return also those that keep what they gave, and give no more."""
        judged = {
            name: self._holds(catalog, cluster, each) for name, each in catalog.classifiers.items()
        }
        unknown = {name for name, holds in judged.items() if holds is None}
        leaving = self._leaving(cluster, {name for name in judged if judged[name] is False})
        matching = sorted(name for name, holds in judged.items() if holds)
        found = Classification(tuple(matching), tuple(sorted(unknown)), leaving)
        return found, unknown | leaving.keys()

    def _holds(self, catalog: Catalog, cluster: Cluster, classifier: Classifier) -> bool | None:
        """Say whether a cluster satisfies a classifier; None where nobody knows yet."""
        admitted = classifier.admits(cluster.kubernetes)
        if not admitted or not classifier.sources:
            return admitted
        judgement = self._records.health.get(cluster.key).value.judgement
        names = [each.name for each in classifier.sources]
        if any(judgement.get(each) != catalog.digest(each) for each in names):
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

    def _leaving(self, cluster: Cluster, missing: set[str]) -> dict[str, datetime]:
        """Return since when those are not satisfied whose labels stay for a while still."""
        giving = missing & {*cluster.given.values()}
        if not giving:
            return {}
        now = self._records.clock.now()
        known = self._records.classified.get(cluster.key).value.leaving
        since = {name: min(known.get(name, now), now) for name in giving}
        return {name: at for name, at in since.items() if now - at < GRACE}

    # What is written --------------------------------------------------------------------------

    def _note(self, cluster: str, found: Classification) -> None:
        """Note what was found, and have what is leaving looked at when its grace is over."""
        if found.leaving:
            over, body = min(found.leaving.values()) + GRACE, UpdateLabels(cluster).message().body
            self._records.timers.set(classify_timer(cluster), over, body)
        kept = self._records.classified.get(cluster)
        if found != kept.value:
            self._records.classified.put(cluster, found, expect=kept.token)

    def _hold(self, before: Catalog, new: Cluster) -> list[HeldRemoval]:
        """Hold what a cluster would lose by its labels, if many clusters lose as much just now."""
        clusters = {**before.clusters, new.key: new}.values()
        after = before.with_clusters(before.revision, clusters, before.choices)
        cause = "labels that Classifiers give were taken from clusters"
        return self._removals.hold_one_of_many(before, after, new.key, cause)

    def _write(self, before: Catalog, cluster: Cluster, token: str) -> None:
        """Write a cluster's labels and publish what follows.

        Raises:
            StaleError: somebody else has written it meanwhile; nothing is changed.
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
        self._consequences.follow([key], before, after)
        if before.choosing:
            self._choosing.settle()
        self._records.pending.delete(pending)
