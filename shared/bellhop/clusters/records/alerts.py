"""Clusters that need attention: few, so that a tick counts them without reading every cluster."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.clusters.alert import Alert
from bellhop.ports.store import Store
from bellhop.state.table import Table

_PARTITION = "alert"


class Alerts:
    """Alerts by cluster; a cluster that needs no attention has no record."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Alert)

    def get(self, cluster: str) -> Alert:
        """Read the alert of a cluster; an empty one if it needs no attention."""
        kept = self._table.get(_PARTITION, cluster)
        return kept.value if kept else Alert()

    def first(self, most: int) -> Iterator[tuple[str, Alert]]:
        """Yield clusters that need attention, each with its alert: by name, `most` at most."""
        for item in self._table.items(_PARTITION, limit=most):
            yield item.sort, self._table.read(item.value)

    def put(self, cluster: str, alert: Alert) -> None:
        """Write the alert of a cluster, or delete it if it is empty; the last writer wins."""
        if alert == Alert():
            self.delete(cluster)
        else:
            self._table.put(_PARTITION, cluster, alert)

    def delete(self, cluster: str) -> None:
        """Forget a cluster."""
        self._store.delete(_PARTITION, cluster)
