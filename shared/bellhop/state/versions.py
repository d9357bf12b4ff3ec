"""Versions of Bellhop side by side on one store: in which form each record is written.

A new field is ignored by versions that do not have it, and takes its default in those that do: that
needs nothing here. Where a reader of the version before would go wrong, be it by
losing the field when it writes the record again, the record's number is raised:

    new version ─► "schema": 2 ─► new reads it
                                  old says that it cannot: its message comes again, to the new one
    old version ─► no number   ─► both read it

A record that is replaced unread needs more than a number: an old version would overwrite it in its
own form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.errors import TemporaryError
from bellhop.ports.store import ANY, Item, Store

SCHEMAS: Mapping[str, int] = {}
"""The number of each kind of record, by the first word of its partition; 1 where it is not here."""

_FIRST = 1


class Versioned:
    """A store that says in which form a record is, and reads none of a later version."""

    def __init__(self, store: Store, schemas: Mapping[str, int] = SCHEMAS) -> None:
        self._store = store
        self._schemas = schemas

    def get(self, partition: str, sort: str) -> Item | None:
        """Read one item.

        Raises:
            TemporaryError: a newer version wrote it.
        """
        item = self._store.get(partition, sort)
        return self._readable(item) if item else None

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        """Write one item and return it with its new token, as a store does."""
        schema = self._schema(item.partition)
        if schema == _FIRST:
            return self._store.put(item, expect=expect)
        value = {**item.value, "schema": schema}
        numbered = Item(item.partition, item.sort, value, expires_at=item.expires_at)
        token = self._store.put(numbered, expect=expect).token
        return Item(item.partition, item.sort, item.value, token, item.expires_at)

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        """Delete one item; say whether it was there."""
        return self._store.delete(partition, sort, expect=expect)

    def query(self, partition: str, **how: Any) -> Iterator[Item]:
        """Yield the items of a partition, as a store does.

        Raises:
            TemporaryError: a newer version wrote one.
        """
        return map(self._readable, self._store.query(partition, **how))

    def all(self) -> Iterator[Item]:
        """Yield all items, as a store does.

        Raises:
            TemporaryError: a newer version wrote one.
        """
        return map(self._readable, self._store.all())

    def _schema(self, partition: str) -> int:
        return self._schemas.get(partition.partition("/")[0], _FIRST)

    def _readable(self, item: Item) -> Item:
        found = item.value.get("schema", _FIRST)
        if found == _FIRST:
            return item
        if found > self._schema(item.partition):
            raise TemporaryError(
                f"cannot read the record '{item.partition} {item.sort}': a newer Bellhop wrote it;"
                " update this one"
            )
        value = {name: each for name, each in item.value.items() if name != "schema"}
        return Item(item.partition, item.sort, value, item.token, item.expires_at)
