"""Typed items: what all aggregates without a payload have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from bellhop.frozen import frozen
from bellhop.ports.store import ANY, Item, Store
from bellhop.records.codec import decode, encode

RETRIES = 8
"""Times that a lost conditional write is tried again with what is there then."""

T = TypeVar("T")


@frozen
class Kept(Generic[T]):
    """A record as it was read, and the token to `expect` for who writes or deletes it."""

    value: T
    token: str


@frozen
class Table(Generic[T]):
    """Records of one kind; `in_key` are the fields that the key tells and the value need not."""

    store: Store
    kind: type[T]
    in_key: tuple[str, ...] = ()

    def get(self, partition: str, sort: str, **known: Any) -> Kept[T] | None:
        """Read one record."""
        item = self.store.get(partition, sort)
        return Kept(self.read(item.value, **known), item.token) if item else None

    def put(
        self,
        partition: str,
        sort: str,
        value: T,
        *,
        expect: str | None = ANY,
        expires_at: datetime | None = None,
    ) -> str:
        """Write one record and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        item = Item(partition, sort, self.write(value), expires_at=expires_at)
        return self.store.put(item, expect=expect).token

    def items(
        self, partition: str, prefix: str = "", after: str = "", *, limit: int | None = None
    ) -> Iterator[Item]:
        """Yield the items of a partition, for `read`."""
        return self.store.query(partition, prefix=prefix, after=after, limit=limit)

    def write(self, value: T) -> dict[str, Any]:
        """Write a record as an item's value."""
        return encode(value, omit=self.in_key)

    def read(self, value: Mapping[str, Any], **known: Any) -> T:
        """Read an item's value."""
        return decode(self.kind, value, **known)
