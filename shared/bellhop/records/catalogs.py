"""Reads the catalog, and keeps it as long as nothing was declared anew."""

from __future__ import annotations

import threading

from bellhop.engine.catalog import Catalog
from bellhop.model.kinds import ClusterProfile, ConfigMap, EventSource, EventTrigger, Secret, of
from bellhop.records.records import Records

_HOLDERS = 256
"""ConfigMaps and Secrets kept in memory; one may take a megabyte."""


class Catalogs:
    """The newest Catalog for one read of its revision; shared between threads."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._newest: Catalog | None = None
        self._holders: dict[tuple[str, str, str], ConfigMap | Secret | None] = {}
        self._held_for = 0

    def current(self) -> Catalog:
        """Return the catalog of the current revision."""
        revision = self._records.revision()
        newest = self._newest
        if newest is not None and newest.revision >= revision:
            return newest
        with self._lock:
            newest = self._newest
            if newest is None or newest.revision < revision:
                newest = self._newest = self._read(revision)
        return newest

    def holder(self, kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
        """Read a ConfigMap or Secret that users declared, once in a revision."""
        revision = self.current().revision
        with self._lock:
            if self._held_for != revision or len(self._holders) >= _HOLDERS:
                self._holders, self._held_for = {}, revision
            holders = self._holders
        place = (kind, namespace, name)
        if place not in holders:
            holders[place] = self._read_holder(*place)
        return holders[place]

    def _read_holder(self, kind: str, namespace: str, name: str) -> ConfigMap | Secret | None:
        manifest = self._records.manifest(kind, namespace, name)
        if manifest is None:
            return None
        holder = of(manifest)
        assert isinstance(holder, ConfigMap | Secret)
        return holder

    def _read(self, revision: int) -> Catalog:
        kinds = [
            of(manifest)
            for kind in ("EventSource", "EventTrigger", "EventBasedAddOn", "ClusterProfile")
            for manifest in self._records.manifests(kind)
        ]
        return Catalog(
            revision,
            self._records.clusters(),
            (kind for kind in kinds if isinstance(kind, EventSource)),
            (kind for kind in kinds if isinstance(kind, EventTrigger)),
            (kind for kind in kinds if isinstance(kind, ClusterProfile)),
        )
