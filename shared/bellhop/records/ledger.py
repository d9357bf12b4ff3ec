"""The ledger: what happened to each event, kept by cluster and day for a week."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from bellhop.errors import TooLargeError
from bellhop.model.record import Entry
from bellhop.ports.store import Item, Store
from bellhop.records.table import Table

LEDGER = timedelta(days=7)

_NOBODYS = "-"
"""The place of lines about no cluster."""

_MOST_KNOWN = 10_000


class Ledger:
    """Lines by cluster, day and time; an index of each day says which clusters have some."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = Table(store, Entry, in_key=("at",))
        self._indexed: set[tuple[str, str]] = set()

    def note(self, entry: Entry) -> None:
        """Add a line; noting the same one twice is noting it once."""
        at = entry.at.isoformat(timespec="microseconds")
        distinct = hashlib.sha256(repr(entry).encode()).hexdigest()[:8]
        cluster, day = entry.cluster or _NOBODYS, at[:10]
        self._index(cluster, day, entry.at + LEDGER + timedelta(days=1))
        place, expires = (f"ledger/{cluster}/{day}", f"{at}/{distinct}"), entry.at + LEDGER
        try:
            self._table.put(*place, entry, expires_at=expires)
        except TooLargeError:
            # What is told of an event must not stop it.
            self._table.put(*place, replace(entry, context={}), expires_at=expires)

    def clusters(self, day: str) -> list[str]:
        """Name the clusters that have lines on a day (YYYY-MM-DD), for `of`."""
        return [item.sort for item in self._store.query(f"ledgers/{day}")]

    def of(self, cluster: str, day: str, after: str = "") -> Iterator[tuple[str, Entry]]:
        """Yield a cluster's lines of a day by time, each with the mark to go on `after`.

        Marks of different clusters differ, and sort by time too.
        """
        place = f"ledger/{cluster or _NOBODYS}/{day}"
        for item in self._table.items(place, after=after):
            at = datetime.fromisoformat(item.sort.partition("/")[0])
            yield item.sort, self._table.read(item.value, at=at)

    def _index(self, cluster: str, day: str, expires: datetime) -> None:
        """Have a cluster found; in memory, so that it costs one read a day and process."""
        if (cluster, day) in self._indexed:
            return
        if self._store.get(f"ledgers/{day}", cluster) is None:
            self._store.put(Item(f"ledgers/{day}", cluster, {}, expires_at=expires))
        if len(self._indexed) >= _MOST_KNOWN:
            self._indexed.clear()
        self._indexed.add((cluster, day))
