"""Reads the catalog, and keeps of it what is not out of date.

the revision ─┬─ the rules' mark is the one at hand ────► the same rules, parsed
              │    └ another ─► the blob that the revision names, or the manifests; unchanged
              │                 ones are not parsed again
              └─ the clusters' mark is the one at hand ─► the same clusters
                   └ another ─► one query; answers about clusters that did not change stand

A mark is that of `declared.Revision`; how the snapshot is written is told in `snapshot`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bellhop.engine.catalog import Catalog
from bellhop.errors import MissingError
from bellhop.model.kinds import (
    ClusterProfile,
    ConfigMap,
    Declaration,
    DeclarationKey,
    EventSource,
    EventTrigger,
    Secret,
    of,
)
from bellhop.model.record import Cluster
from bellhop.records.declared import Manifest, Revision
from bellhop.records.records import Records
from bellhop.records.table import Kept

_RULES = ("EventSource", "EventTrigger", "EventBasedAddOn", "ClusterProfile")
_HOLDERS = 256
"""ConfigMaps and Secrets kept in memory; one may take a megabyte."""


@dataclass(frozen=True)
class _Known:
    """A catalog, and what it was made of."""

    revision: Revision
    rules: Sequence[tuple[Manifest, Declaration]]
    clusters: Mapping[str, Kept[Cluster]]
    catalog: Catalog


class Catalogs:
    """The newest Catalog for one read of its revision; shared between threads."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._newest: _Known | None = None
        self._holders: dict[tuple[str, str, str], ConfigMap | Secret | None] = {}
        self._held_for = ""

    def current(self) -> Catalog:
        """Return the catalog of the current revision.

        Raises:
            MissingError: something that it is made of is lost. What is not known is not taken
                for deleted: nothing is decided until that is declared again, or deleted.
        """
        return self._current().catalog

    def known(self) -> Catalog:
        """Return the current catalog without what is lost, for who is about to cure that."""
        try:
            return self.current()
        except MissingError:
            return self._read(self._records.catalog.read(), whole=False).catalog

    def holder(self, kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
        """Read a ConfigMap or Secret that users declared, once as long as none changes."""
        mark = self._current().revision.declared
        with self._lock:
            if self._held_for != mark or len(self._holders) >= _HOLDERS:
                self._holders, self._held_for = {}, mark
            holders = self._holders
        place = (kind, namespace, name)
        if place not in holders:
            holders[place] = self._read_holder(*place)
        return holders[place]

    def _read_holder(self, kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
        kept = self._records.manifests.get(kind, namespace, name)
        if kept is None:
            return None
        holder = of(kept.value)
        assert isinstance(holder, ConfigMap | Secret)
        return holder

    def _current(self) -> _Known:
        revision = self._records.catalog.read()
        newest = self._newest
        if newest is not None and newest.revision.number >= revision.number:
            return newest
        with self._lock:
            newest = self._newest
            if newest is None or newest.revision.number < revision.number:
                newest = self._newest = self._read(revision)
        return newest

    def _read(self, revision: Revision, *, whole: bool = True) -> _Known:
        """Read what changed since the newest catalog, rules first.

        What is at hand is at least as new as the marks it was read for.
        """
        newest = self._newest
        same_rules = newest is not None and newest.revision.declared == revision.declared
        if newest and same_rules:
            rules = newest.rules
        else:
            rules = self._parsed(self._manifests(revision, whole=whole), newest)
        if newest and newest.revision.clusters == revision.clusters:
            clusters = newest.clusters
        else:
            clusters = self._records.clusters.since(newest.clusters if newest else {})
        values = [kept.value for kept in clusters.values()]
        if newest and same_rules:
            catalog = newest.catalog.with_clusters(revision.number, values)
        else:
            catalog = _catalog(revision.number, values, [kind for _, kind in rules])
        return _Known(revision, rules, clusters, catalog)

    def _manifests(self, revision: Revision, *, whole: bool) -> list[Manifest]:
        """Read all rules; without `whole`, those that are not lost."""
        by_kind = self._records.snapshot.get(revision, _RULES)
        if by_kind is None:
            manifests = self._records.manifests
            if not whole:
                return [each for kind in _RULES for _, each in manifests.listed(kind) if each]
            by_kind = {kind: list(manifests.of(kind)) for kind in _RULES}
            self._records.snapshot.put(revision.declared, by_kind)
        return [each for kind in _RULES for each in by_kind[kind]]

    def _parsed(
        self, manifests: list[Manifest], newest: _Known | None
    ) -> list[tuple[Manifest, Declaration]]:
        old = {kind.key: (manifest, kind) for manifest, kind in newest.rules} if newest else {}
        found = []
        for manifest in manifests:
            was = old.get(DeclarationKey(manifest["kind"], "", manifest["metadata"]["name"]))
            kind = was[1] if was and was[0] == manifest else of(manifest)
            found.append((manifest, kind))
        return found


def _catalog(number: int, clusters: list[Cluster], rules: list[Declaration]) -> Catalog:
    return Catalog(
        number,
        clusters,
        (kind for kind in rules if isinstance(kind, EventSource)),
        (kind for kind in rules if isinstance(kind, EventTrigger)),
        (kind for kind in rules if isinstance(kind, ClusterProfile)),
    )
