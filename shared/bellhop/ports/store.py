"""Storage: records in the store, blobs, and secrets."""

from __future__ import annotations

import hashlib
import re
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

    A token says nothing but equality. It is never used twice: not when the item is deleted and
    created again with the same value, and not when the store is restored from a backup.

    No reader sees an item whose `expires_at` has passed, whenever the store deletes it.
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
            StaleError: `expect` is a token and another item, or none, is there: read again. Or
                it is ABSENT, and an item is there.
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
        """Yield all items of all partitions, in no order, to move an installation.

        An item that is written meanwhile may be yielded or not.
        """
        ...


_KIND = re.compile(r"[a-z]+(?=/)")


class Blobs(Protocol):
    """Immutable bytes by name."""

    def get(self, name: str) -> bytes:
        """Read a blob.

        Raises:
            MissingError: there is none of that name.
        """
        ...

    def put(self, name: str, value: bytes) -> None:
        """Write a blob, whole or not at all; writing it again replaces it."""
        ...

    def delete(self, name: str) -> None:
        """Delete a blob; one that is not there is fine."""
        ...


def object_key(name: str) -> str:
    """Return the key of a blob in a cloud's bucket: `blobs/KIND/SHA-256 of its name`.

    Every name is safe there, none is too long, and the load spreads. Its kind, the first word of
    the partition of its record, is what a policy can name.
    """
    kind = _KIND.match(name)
    # A lone surrogate is a name like any other here: only its digest is sent.
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"blobs/{kind[0] if kind else 'other'}/{digest}"


class Secrets(Protocol):
    """Named secrets; the last value written is the one that is read."""

    def read(self, name: str) -> bytes:
        """Read a secret.

        Raises:
            MissingError: there is none of that name.
        """
        ...

    def put(self, name: str, value: bytes) -> None:
        """Write a secret, new or over an older one, whole or not at all."""
        ...

    def delete(self, name: str) -> None:
        """Forget a secret, with all its older values; one that is not there is fine."""
        ...

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names that start with `prefix`, in order."""
        ...
