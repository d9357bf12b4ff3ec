"""Typed items: what all aggregates have in common; a field is declared in one place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct, ValidationError, to_builtins

from bellhop.core.structs import read_struct
from bellhop.errors import TemporaryError
from bellhop.ports.store import ANY, Item, Store

T = TypeVar("T")
R = TypeVar("R", bound=Struct)


def encode(record: Struct, *, omit: Collection[str] = ()) -> dict[str, Any]:
    """Write a record as JSON, without the fields that its key tells."""
    names = [name for name in record.__struct_fields__ if name not in omit]
    return {name: to_builtins(getattr(record, name)) for name in names}


def decode(kind: type[R], value: Mapping[str, Any], **known: Any) -> R:
    """Read what `encode` wrote; `known` are the fields that the key told.

    A field that is not known is ignored, one that is not there takes its default: versions of
    Bellhop that are a field apart read each other's records.

    Raises:
        TemporaryError: a field without a default is missing, or is of another type: the version
            that wrote it can read it.
    """
    try:
        return read_struct({**value, **known}, kind)
    except ValidationError as error:
        raise TemporaryError(
            f"cannot read a stored {kind.__name__}: it is of another version of Bellhop;"
            " let the version that wrote it read it"
        ) from error


class Stored(Struct, Generic[T], frozen=True):
    """A record as it was read, and the token to `expect` for who writes or deletes it."""

    value: T
    token: str


class Table(Struct, Generic[R], frozen=True):
    """Records of one kind; `in_key` are the fields that the key tells and the value need not."""

    store: Store
    kind: type[R]
    in_key: tuple[str, ...] = ()

    def get(self, partition: str, sort: str, **known: Any) -> Stored[R] | None:
        """Read one record."""
        item = self.store.get(partition, sort)
        return Stored(self.read(item.value, **known), item.token) if item else None

    def put(
        self,
        partition: str,
        sort: str,
        value: R,
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

    def write(self, value: R) -> dict[str, Any]:
        """Write a record as an item's value."""
        return encode(value, omit=self.in_key)

    def read(self, value: Mapping[str, Any], **known: Any) -> R:
        """Read an item's value."""
        return decode(self.kind, value, **known)
