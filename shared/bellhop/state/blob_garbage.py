"""Blobs that may have to go: noted before they are written or superseded, collected a day later.

Blobs outlive the heads that named them, so that a store that was restored, or lost its last
instants with the power, still finds what its records point to.

The name of a blob says which head may point to it. So a forged note deletes no blob that a head
names: ingest, which reads what others send, may write notes.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import datetime, timedelta

from bellhop.errors import StaleError
from bellhop.ports.store import Blobs, Item, Store

KEEP = timedelta(days=1)
"""How long a blob is kept that no record names."""

_SHARDS = "0123456789abcdef"


def blob_name(partition: str, sort: str) -> str:
    """Return a fresh name for a blob that one head, and no other, may point to."""
    return f"{_place(partition, sort)}/{os.urandom(8).hex()}"


def _place(partition: str, sort: str) -> str:
    return f"{partition}/{hashlib.sha256(sort.encode()).hexdigest()[:32]}"


class BlobGarbage:
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
        name, place = note["blob"], (note["partition"], note["sort"])
        # A note that names another head than the blob's is forged.
        unused = name.rpartition("/")[0] == _place(*place) and not self._is_named(name, *place)
        if unused:
            self._blobs.delete(name)
        with suppress(StaleError):
            # A worker that replaces the head just now has recorded the blob again.
            self._store.delete(item.partition, item.sort, expect=item.token)
        return unused

    def _is_named(self, name: str, partition: str, sort: str) -> bool:
        head = self._store.get(partition, sort)
        return head is not None and head.value.get("blob") == name
