"""Cache of the catalog, which reads only what is out of date.

a share of the revision is unchanged ──────────────► the cached catalog

the revision ─┬─ the mark of rules is the cached one ───► the same rules, parsed
              │    └ another ─► manifests changed since, beside the cached rules or those of
              │                 the blob; or all manifests. Unchanged ones are not parsed again
              └─ the mark of clusters is the cached one ─► the same clusters
                   └ another ─► one query; answers about unchanged clusters stay cached.
                     The selections of sets with maxReplicas are another query, if there are any

A mark is one of `CatalogRevision`; `snapshot` describes how the snapshot is written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from bellhop.api.kinds import (
    ClusterSet,
    ConfigMap,
    Declaration,
    DeclarationKey,
    Secret,
    key_of,
    of,
)
from bellhop.api.names import RULES
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.records import Manifest, Revision
from bellhop.errors import MissingError
from bellhop.state.cluster import Cluster, SetSelection
from bellhop.state.records import Records
from bellhop.state.table import Stored

_FEW = 8
"""Rules that are read one by one beside a blob; with more, the blob is written again."""

_HOLDERS = 256
"""ConfigMaps and Secrets kept in memory; one may take a megabyte."""


Rules = Mapping[DeclarationKey, tuple[Manifest, Declaration]]

Written = Mapping[str, Declaration]
"""Rules just written, by the tokens of the writes: as long as these are stored, none is read."""


class _Known(Struct, frozen=True):
    """A catalog, and what it was made of."""

    revision: Revision
    rules: Rules
    clusters: Mapping[str, Stored[Cluster]]
    catalog: Catalog


_NOTHING = _Known(Revision(-1, "-", "-"), {}, {}, Catalog(0, (), (), (), ()))
"""A revision whose marks no writer draws."""


class Catalogs:
    """The newest Catalog for one small read; shared between threads."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._lock = threading.Lock()
        self._newest = _NOTHING
        self._holders: dict[tuple[str, str, str], ConfigMap | Secret | None] = {}
        self._held_for = ""

    def current(self) -> Catalog:
        """Return the catalog of the current revision.

        Raises:
            MissingError: some content of it is lost. It does not count as deleted: nothing is
                decided until it is applied again, or deleted.
        """
        return self._read_current().catalog

    @property
    def latest(self) -> Catalog:
        """The catalog that was read last in this process; nothing is read now."""
        return self._newest.catalog

    def known(self, written: Written | None = None) -> Catalog:
        """Return the current catalog without lost content, for callers that restore it.

        Rules that were just `written`, and are still stored, are not parsed again.
        """
        try:
            return self._read_current(written).catalog
        except MissingError:
            return self._read(self.records.catalog.read(), {}, whole=False).catalog

    def holder(self, kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
        """Read a ConfigMap or Secret that users applied, once as long as none changes.

        It is as new as the catalog that the caller has read: the revision is not read again.
        """
        newest = self._newest if self._newest is not _NOTHING else self._read_current()
        mark = newest.revision.declared
        with self._lock:
            if self._held_for != mark or len(self._holders) >= _HOLDERS:
                self._holders, self._held_for = {}, mark
            holders = self._holders
        place = (kind, namespace, name)
        if place not in holders:
            holders[place] = self._read_holder(*place)
        return holders[place]

    def _read_holder(self, kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
        kept = self.records.manifests.get(kind, namespace, name)
        if kept is None:
            return None
        holder = of(kept.value)
        assert isinstance(holder, ConfigMap | Secret)
        return holder

    def _read_current(self, written: Written | None = None) -> _Known:
        newest = self._newest
        if newest is not _NOTHING and self.records.catalog.stands(newest.revision.number):
            return newest
        revision = self.records.catalog.read()
        if self._newest.revision.number >= revision.number:
            return self._newest
        with self._lock:
            if self._newest.revision.number < revision.number:
                self._newest = self._read(revision, written or {})
            return self._newest

    def _read(self, revision: Revision, written: Written, *, whole: bool = True) -> _Known:
        """Read what changed since the newest catalog, rules first.

        Cached rules are at least as new as the marks they were read for.
        """
        newest = self._newest
        same_rules = newest.revision.declared == revision.declared
        rules = newest.rules
        if not same_rules:
            rules = self._read_rules(revision, written, whole=whole)
        clusters = newest.clusters
        if newest.revision.clusters != revision.clusters:
            clusters = self.records.clusters.since(clusters)
        values = [kept.value for kept in clusters.values()]
        changed = {} if same_rules else _changed(newest.rules, rules)
        choices = self._read_selections(newest.catalog, changed.values())
        if same_rules:
            catalog = newest.catalog.with_clusters(revision.number, values, choices)
        else:
            catalog = newest.catalog.with_rules(revision.number, values, changed, choices)
        catalog.declared = revision.declared
        return _Known(revision, rules, clusters, catalog)

    def _read_selections(
        self, earlier: Catalog, changed: Iterable[Declaration | None]
    ) -> dict[str, SetSelection]:
        """Read what sets have chosen, where any may choose; a choice changes the clusters' mark."""
        if earlier.choosing or any(isinstance(each, ClusterSet) for each in changed):
            return {place: kept.value for place, kept in self.records.choices.all().items()}
        return {}

    def _read_rules(self, revision: Revision, written: Written, *, whole: bool) -> Rules:
        """Read the rules that changed, or all; without `whole`, those that are not lost."""
        rules = dict(self._newest.rules)
        parsed = rules | {each.key: (each.written, each) for each in written.values()}
        since = revision.since(self._newest.revision.declared)
        unlaid = revision.since(revision.laid) if revision.blob else None
        few = unlaid is not None and len(unlaid) <= _FEW
        if since is None:
            kept = self.records.snapshot.get(revision, RULES) if few else None
            few, since = kept is not None, unlaid if kept is not None else None
            found = _listed(kept) if kept else self._read_manifests(written, whole=whole)
            rules = _parsed(found, parsed)
        for key in {DeclarationKey(*each) for each in since or () if each[0] in RULES}:
            rules.pop(key, None)
            rules |= _parsed(self._read_manifest(key, whole=whole), parsed)
        if whole and not few:
            self._write_blob(revision, rules)
        return rules

    def _read_manifests(self, written: Written, *, whole: bool) -> Iterator[Manifest]:
        manifests = self.records.manifests
        at_hand = {token: each.written for token, each in written.items()}
        for kind in RULES:
            if whole:
                yield from manifests.of(kind, at_hand)
            else:
                yield from (each for _, each in manifests.listed(kind) if each)

    def _read_manifest(self, key: DeclarationKey, *, whole: bool) -> list[Manifest]:
        try:
            kept = self.records.manifests.get(*key)
        except MissingError:
            if whole:
                raise
            return []
        return [kept.value] if kept else []

    def _write_blob(self, revision: Revision, rules: Rules) -> None:
        by_kind: dict[str, list[Manifest]] = {kind: [] for kind in RULES}
        for key, (manifest, _) in rules.items():
            by_kind[key.kind].append(manifest)
        self.records.snapshot.put(revision.declared, by_kind)


def _parsed(
    manifests: Iterable[Manifest], old: Rules
) -> dict[DeclarationKey, tuple[Manifest, Declaration]]:
    found = {}
    for manifest in manifests:
        key = key_of(manifest)
        was = old.get(key)
        found[key] = was if was and was[0] == manifest else (manifest, of(manifest))
    return found


def _listed(by_kind: Mapping[str, list[Manifest]]) -> Iterator[Manifest]:
    return (each for kind in RULES for each in by_kind[kind])


def _changed(old: Rules, new: Rules) -> dict[DeclarationKey, Declaration | None]:
    """Return what became of the rules that are not the same, None being no more."""
    gone: dict[DeclarationKey, Declaration | None] = dict.fromkeys(old.keys() - new.keys())
    return gone | {key: rule[1] for key, rule in new.items() if old.get(key) is not rule}
