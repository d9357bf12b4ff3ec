"""Reads the catalog, and keeps it as long as nothing was declared anew."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from bellhop.engine.catalog import Catalog
from bellhop.errors import MissingError
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
        """Return the catalog of the current revision.

        Raises:
            MissingError: something that it is made of is lost. What is not known is not taken
                for deleted: nothing is decided until that is declared again, or deleted.
        """
        revision = self._records.catalog.revision()
        newest = self._newest
        if newest is not None and newest.revision >= revision:
            return newest
        with self._lock:
            newest = self._newest
            if newest is None or newest.revision < revision:
                newest = self._newest = self._read(revision)
        return newest

    def known(self) -> Catalog:
        """Return the current catalog without what is lost, for who is about to cure that."""
        try:
            return self.current()
        except MissingError:
            return self._read(self._records.catalog.revision(), whole=False)

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
        kept = self._records.manifests.get(kind, namespace, name)
        if kept is None:
            return None
        holder = of(kept.value)
        assert isinstance(holder, ConfigMap | Secret)
        return holder

    def _manifests(self, kind: str, *, whole: bool) -> Iterable[dict[str, Any]]:
        if whole:
            return self._records.manifests.of(kind)
        return (each for _, each in self._records.manifests.listed(kind) if each is not None)

    def _read(self, revision: int, *, whole: bool = True) -> Catalog:
        kinds = [
            of(manifest)
            for kind in ("EventSource", "EventTrigger", "EventBasedAddOn", "ClusterProfile")
            for manifest in self._manifests(kind, whole=whole)
        ]
        return Catalog(
            revision,
            self._records.clusters.all(),
            (kind for kind in kinds if isinstance(kind, EventSource)),
            (kind for kind in kinds if isinstance(kind, EventTrigger)),
            (kind for kind in kinds if isinstance(kind, ClusterProfile)),
        )
