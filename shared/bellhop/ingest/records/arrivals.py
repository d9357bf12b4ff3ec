"""When each CloudEvent came first, so that one that comes again takes its old place.

  the first to come is noted with its place ─► it is kept ─► it is told ─► the sender is answered
  it comes again ─► its note says where it belongs: behind what has come since

The specification says that two events of one source and id are the same one. A note is about one
EventSource, and goes by itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT, Store
from bellhop.state.table import Table

REMEMBERED = timedelta(days=30)
"""How long an event is known for one that came before."""


class Arrival(Struct, frozen=True):
    """When an event came first, and its place among those of its source and subject."""

    at: datetime
    order: int


class Arrivals:
    """First arrivals by cluster, EventSource and event."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Arrival)

    def first(self, cluster: str, listener: str, uid: str, arrival: Arrival) -> Arrival:
        """Note that an event has come; return its first arrival, which may be another one."""
        place = f"arrival/{cluster}", f"{listener}/{uid}"
        ends = arrival.at + REMEMBERED
        try:
            self._table.put(*place, arrival, expect=ABSENT, expires_at=ends)
        except StaleError:
            kept = self._table.get(*place)
            return kept.value if kept else arrival
        return arrival

    def forget(self, cluster: str) -> None:
        """Delete all of a cluster."""
        for item in self._store.query(f"arrival/{cluster}"):
            self._store.delete(item.partition, item.sort)
