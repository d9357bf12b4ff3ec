"""Tables of records: one declaration says where the records of a kind lie, and as what."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from string import Formatter
from typing import Any, Generic, TypeVar, TypeVarTuple, cast, overload

from msgspec import Struct, ValidationError, to_builtins
from msgspec.structs import replace

from bellhop.core.structs import read_struct
from bellhop.errors import MissingError, TemporaryError
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.payloads import Payloads

T = TypeVar("T")
R = TypeVar("R", bound=Struct)
K = TypeVarTuple("K")


def encode(record: Struct, *, omit: Collection[str] = ()) -> dict[str, Any]:
    """Return a record as JSON, without the fields of its key."""
    names = [name for name in record.__struct_fields__ if name not in omit]
    return {name: to_builtins(getattr(record, name)) for name in names}


def decode(kind: type[R], value: Mapping[str, Any], **known: Any) -> R:
    """Read a record that `encode` wrote; `known` are the fields of its key.

    An unknown field is ignored, a missing one takes its default: versions of Bellhop that are a
    field apart read each other's records.

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
    """A record as it was read, and the token to `expect` when it is written or deleted."""

    value: T
    token: str


class Table(Generic[R, *K]):
    """Records of one kind in a store: a subclass declares where they lie, and adds what is special.

        class Watches(Table[Watch, str, str]):
            kind = Watch
            partition, sort = "watch/{cluster}", "{profile}"
            in_key = ("cluster", "profile")

    `partition` and `sort` are templates of an item's key. `K` are the types of their fields, and so
    the arguments of `get` and `delete`. `in_key` are the record's fields that an item need not
    have, as its key has them: the one of the partition first.
    """

    kind: type[R]
    partition: str
    sort: str
    in_key: tuple[str, ...] = ()
    published: Mapping[str, object] = {"told": True}
    """The fields of a record whose messages are published: see `mark_published`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        fields = (field for _, field, _, _ in Formatter().parse(self.partition + self.sort))
        self._names = tuple(field for field in fields if field)

    # Keys ---------------------------------------------------------------------------------------

    def place(self, *key: *K) -> tuple[str, str]:
        """Return partition and sort key of a record."""
        values: tuple[object, ...] = key
        fields = dict(zip(self._names, values, strict=True))
        return self.partition.format_map(fields), self.sort.format_map(fields)

    def key(self, record: R) -> tuple[*K]:
        """Return the key of a record that has it in its fields."""
        key: Any = tuple(getattr(record, name) for name in self._names)
        return cast("tuple[*K]", key)

    def key_fields(self, item: Item) -> dict[str, Any]:
        """Return the fields of a record that are in the key of its item."""
        scope = item.partition.partition("/")[2]
        texts = (scope, item.sort) if "{" in self.partition else (item.sort,)
        return dict(zip(self.in_key, texts, strict=False))

    # Reading ------------------------------------------------------------------------------------

    def get(self, *key: *K) -> Stored[R] | None:
        """Read one record."""
        item = self._store.get(*self.place(*key))
        return self.open(item) if item else None

    def token(self, *key: *K) -> str:
        """Read the token of a record, without the record; ABSENT if there is none."""
        item = self._store.get(*self.place(*key))
        return item.token if item else ABSENT

    def rows(
        self, *scope: str, prefix: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[tuple[str, Stored[R]]]:
        """Yield the records of a partition, each with its sort key; see `Store.query`."""
        for item in self.items(*scope, prefix=prefix, after=after, limit=limit):
            if stored := self.open(item):
                yield item.sort, stored

    def items(
        self, *scope: str, prefix: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[Item]:
        """Yield the items of a partition as they are."""
        fields = dict(zip(self._names, scope, strict=False))
        partition = self.partition.format_map(fields)
        return self._store.query(partition, prefix=prefix, after=after, limit=limit)

    def open(self, item: Item) -> Stored[R] | None:
        """Read the record of an item; None where it was deleted meanwhile."""
        return Stored(self.read_item(item), item.token)

    def read_item(self, item: Item) -> R:
        """Read the record of an item, as far as the item has it."""
        return decode(self.kind, item.value, **self.key_fields(item))

    # Writing ------------------------------------------------------------------------------------

    @overload
    def put(self, *given: *tuple[*K, R], expect: str | None = ANY) -> str: ...

    @overload
    def put(self, record: R, /, *, expect: str | None = ANY) -> str: ...

    def put(self, *given: Any, expect: str | None = ANY) -> str:  # type: ignore[misc]
        """Write a record, given after its key unless its fields have that, and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        *key, record = given
        place = self.place(*cast("tuple[*K]", tuple(key) or self.key(record)))
        return self.put_at(*place, record, expect=expect)

    def put_at(self, partition: str, sort: str, record: R, *, expect: str | None) -> str:
        """Write a record to its place, and return its token."""
        value = encode(record, omit=self.in_key)
        item = Item(partition, sort, value, expires_at=self.expiry(record))
        return self._store.put(item, expect=expect).token

    def mark_published(self, *given: Any, expect: str) -> str:
        """Record that the messages of a record's change are published; return its token.

        The record, given as to `put`, is the outbox of its own change: a field says whether its
        messages are published, or names those that are not.

            written, unpublished, on condition ─► its messages published ─► marked, on condition

        After a death in between the message that is handled comes again, and its handler publishes
        the messages of a record that is not marked.

        Raises:
            StaleError: another worker has written the record, and publishes its own change.
        """
        *key, record = given
        return self.put(*key, replace(record, **self.published), expect=expect)

    def expiry(self, record: R) -> datetime | None:  # noqa: ARG002 - a subclass reads it
        """Return the time at which a record expires; None if it stays."""
        return None

    def delete(self, *key: *K, expect: str | None = ANY) -> bool:
        """Delete one record; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self.delete_at(*self.place(*key), expect=expect)

    def delete_at(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        """Delete the record of a place."""
        return self._store.delete(partition, sort, expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all records of a cluster: its partition, or its one record."""
        if "{" not in self.partition:
            self.delete_at(self.partition, cluster)
            return
        for item in self.items(cluster):
            self.delete_at(item.partition, item.sort)


class SealedTable(Table[R, *K]):
    """Records of which some fields are sealed, and lie apart where they are long: see `Payloads`.

    `sealed` are these fields. A table without any seals only what is too long for an item.
    """

    sealed: tuple[str, ...] = ()
    remembered = 0
    """Records that are kept as they were read, by tokens, which never come back."""

    def __init__(self, payloads: Payloads) -> None:
        super().__init__(payloads.store)
        self._payloads = payloads
        self._lock = threading.Lock()
        self._read: OrderedDict[str, R] = OrderedDict()

    def open(self, item: Item) -> Stored[R] | None:
        """Read the record of an item; the newer one, or None, where it was just replaced.

        Raises:
            MissingError: what lies apart is lost, and `restore` makes nothing up; `head` reads
                the rest.
        """
        if known := self._recall(item.token):
            return Stored(known, item.token)
        try:
            found = self._payloads.open(item)
        except MissingError as error:
            return Stored(self.restore(item, error), item.token)
        if found is None:
            return None
        fields = {**found.head, **self.unseal(found.payload), **self.key_fields(item)}
        record = decode(self.kind, fields)
        self._remember(found.item.token, record)
        return Stored(record, found.item.token)

    def head(self, *key: *K) -> Stored[R] | None:
        """Read a record without what lies apart; its sealed fields have their defaults."""
        item = self._store.get(*self.place(*key))
        return Stored(self.read_item(item), item.token) if item else None

    def read_item(self, item: Item) -> R:
        """Read the record of an item without its sealed fields, and without what is very long."""
        return decode(self.kind, self._payloads.head(item), **self.key_fields(item))

    def restore(self, item: Item, error: MissingError) -> R:  # noqa: ARG002 - a subclass reads it
        """Make up a record of which what lies apart is lost, or raise."""
        raise error

    def seal(self, record: R) -> Any:
        """Return what is sealed of a record, as JSON; None if that is nothing."""
        others = {*record.__struct_fields__} - {*self.sealed}
        return encode(record, omit=others) if self.sealed else None

    def unseal(self, payload: Any) -> Mapping[str, Any]:
        """Return the fields that `seal` made a payload of."""
        return payload or {}

    def put_at(self, partition: str, sort: str, record: R, *, expect: str | None) -> str:
        """Write a record to its place, and return its token."""
        head = self.head_fields(record)
        return self._payloads.put(partition, sort, head, self.seal(record), expect=expect)

    def put_head(self, record: R, *, expect: str | None = ANY) -> str:
        """Write all of a record but its sealed fields, which stay what they are.

        Raises:
            StaleError: something else than `expect` is there, or nothing.
        """
        place = self.place(*self.key(record))
        return self._payloads.put_head(*place, self.head_fields(record), expect=expect)

    def mark_published(self, *given: Any, expect: str) -> str:
        """Record that the messages of a record's change are published, as `Table` does."""
        (record,) = given
        return self.put_head(replace(record, **self.published), expect=expect)

    def head_fields(self, record: R) -> dict[str, Any]:
        """Return the fields of a record that are not sealed, as JSON."""
        return encode(record, omit=(*self.in_key, *self.sealed))

    def delete_at(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        """Delete the record of a place."""
        return self._payloads.delete(partition, sort, expect=expect)

    def forget(self, cluster: str) -> None:
        """Delete all records of a cluster, and what lies apart of them."""
        if "{" not in self.partition:
            self.delete_at(self.partition, cluster)
        else:
            self._payloads.forget(self.partition.format(cluster=cluster))

    def _recall(self, token: str) -> R | None:
        with self._lock:
            record = self._read.get(token)
            if record:
                self._read.move_to_end(token)
            return record

    def _remember(self, token: str, record: R) -> None:
        with self._lock:
            self._read[token] = record
            while len(self._read) > self.remembered:
                self._read.popitem(last=False)
