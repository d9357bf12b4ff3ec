"""The managed store: small items under a partition and a sort key, written on conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

ANY = -1
"""Write whatever is there."""

ABSENT = 0
"""Write only if nothing is there."""


@dataclass(frozen=True, slots=True)
class Item:
    """One record: `value` is JSON; `version` is 1 at creation and grows by one with each write.

    An item whose `expires_at` has passed is gone for every reader, whenever it is deleted.
    """

    partition: str
    sort: str
    value: Mapping[str, Any]
    version: int = 0
    expires_at: datetime | None = None


class Store(Protocol):
    """Items by key; every read sees the last finished write."""

    def get(self, partition: str, sort: str) -> Item | None:
        """Read one item."""
        ...

    def put(self, item: Item, *, expect: int = ANY) -> Item:
        """Write one item and return it with its new version.

        `expect` is ANY, ABSENT or the version that must be there; `item.version` is not looked at.

        Raises:
            StaleError: something else is there.
            TooLargeError: the item exceeds what the store takes (`LIMIT` of the adapter).
        """
        ...

    def delete(self, partition: str, sort: str, *, expect: int = ANY) -> bool:
        """Delete one item; say whether it was there.

        Raises:
            StaleError: `expect` is a version and another one is there.
        """
        ...

    def query(
        self, partition: str, *, prefix: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[Item]:
        """Yield the items of a partition in the byte order of their sort keys.

        Only sort keys that start with `prefix` and come after `after` (exclusive).
        """
        ...
