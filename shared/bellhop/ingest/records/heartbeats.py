"""When each cluster was last heard: who sends nothing says that it is there, now and then."""

from __future__ import annotations

from bellhop.ports.store import Store
from bellhop.state.record import Heartbeat
from bellhop.state.table import Table


class Heartbeats:
    """The newest word of each cluster's sender; ingest writes it once a minute at most."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Heartbeat)

    def get(self, cluster: str) -> Heartbeat | None:
        """Read when a cluster was last heard; None if it never was."""
        kept = self._table.get("heard", cluster)
        return kept.value if kept else None

    def put(self, cluster: str, heard: Heartbeat) -> None:
        """Write when a cluster was heard; of two at once either is as good."""
        self._table.put("heard", cluster, heard)

    def delete(self, cluster: str) -> None:
        """Forget a cluster."""
        self._store.delete("heard", cluster)
