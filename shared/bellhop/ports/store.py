"""The managed store: small items under a partition and a sort key, written on conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from msgspec import Struct

ANY: Final = None
"""Write whatever is there."""

ABSENT: Final = ""
"""Write only if nothing is there."""

ITEM_LIMIT = 350_000
"""Bytes that one item may take: JSON, with all but ASCII escaped, and both keys.

The narrowest of the clouds, DynamoDB, takes 400 KB with the names of its own attributes.
"""

KEY_LIMIT = 1024
"""Bytes that a partition may take, and a sort key: DynamoDB's limit, below Firestore's 1,500."""


class Item(Struct, frozen=True):
    """One record: `value` is JSON; `token` names this write of it, and no other ever.

    A token tells nothing but equality. It never comes back: not when the item is deleted and made
    anew with the same value, and not when the whole store is restored from a backup and goes on.

    An item whose `expires_at` has passed is gone for every reader, whenever it is deleted.
    """

    partition: str
    sort: str
    value: Mapping[str, Any]
    token: str = ""
    expires_at: datetime | None = None


class Store(Protocol):
    """Items by key; every read sees the last finished write."""

    def get(self, partition: str, sort: str) -> Item | None:
        """Read one item."""
        ...

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        """Write one item and return it with its new token.

        `expect` is ANY, ABSENT or the token that must be there; `item.token` is not looked at.

        Raises:
            StaleError: something else is there. An adapter whose client repeats a request that
                was not answered may also say so of a write of its own: read again.
            TooLargeError: the item exceeds ITEM_LIMIT, or one of its keys KEY_LIMIT.
            InvalidError: the value is not JSON, a part of the key is empty or not Unicode, or
                `expires_at` has no zone.
        """
        ...

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        """Delete one item; say whether it was there.

        Raises:
            StaleError: `expect` is a token and something else, or nothing, is there: what was
                read is gone, and whoever read it must look again. Or it is ABSENT, and
                something is there.
        """
        ...

    def query(
        self,
        partition: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int | None = None,
        backwards: bool = False,
    ) -> Iterator[Item]:
        """Yield the items of a partition in the byte order of their sort keys, or backwards.

        Only sort keys that start with `prefix` and come after `after` (exclusive). Pages are read
        as they are asked for: an item that is written meanwhile may be yielded or not, as it was
        or as it is, and none is yielded twice.
        """
        ...

    def all(self) -> Iterator[Item]:
        """Yield all items of all partitions, in no order: for who moves an installation.

        What is written meanwhile may be yielded or not.
        """
        ...
