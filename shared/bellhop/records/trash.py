"""Blobs that may have to go: noted before they are written or superseded, collected a day later.

Blobs outlive the heads that named them, so that a store that was restored, or lost its last
instants with the power, still finds what its records point to.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime, timedelta

from bellhop.errors import StaleError
from bellhop.ports.blobs import Blobs
from bellhop.ports.store import Item, Store

KEEP = timedelta(days=1)
"""How long a blob is kept that no record names."""

_SHARDS = "0123456789abcdef"


class Trash:
    """Names of blobs, each with the head that may point to it and when to look."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    def put(self, name: str, partition: str, sort: str, now: datetime) -> None:
        """Have a blob looked at in a day: before it is written, and before its head is replaced."""
        mark = hashlib.sha256(name.encode()).hexdigest()
        due = (now + KEEP).isoformat()
        value = {"blob": name, "partition": partition, "sort": sort, "due": due}
        self._store.put(Item(f"trash/{mark[0]}", mark, value))

    def collect(self, now: datetime) -> int:
        """Delete the blobs that are due and that no head points to; return how many there were."""
        return sum(self._look_at(item, now) for item in self._all())

    def _all(self) -> list[Item]:
        return [item for shard in _SHARDS for item in self._store.query(f"trash/{shard}")]

    def _look_at(self, item: Item, now: datetime) -> bool:
        note = item.value
        if datetime.fromisoformat(note["due"]) > now:
            return False
        head = self._store.get(note["partition"], note["sort"])
        wanted = head is not None and head.value.get("blob") == note["blob"]
        if not wanted:
            self._blobs.delete(note["blob"])
        with suppress(StaleError):
            # Somebody who supersedes the head just now has noted the blob anew.
            self._store.delete(item.partition, item.sort, expect=item.token)
        return not wanted
