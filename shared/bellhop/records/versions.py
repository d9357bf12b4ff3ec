"""Versions of Bellhop side by side on one store: in which form each record is written.

A field that is added is passed over by those who do not know it, and takes its default with those
who do: that needs nothing here. Where a reader of the version before would go wrong, be it by
losing the field when it writes the record again, the record's number is raised:

    new version ─► "schema": 2 ─► new reads it
                                  old says that it cannot: its message comes again, to the new one
    old version ─► no number   ─► both read it

A record that makes no use of what is new is written without the number, where that can be seen: the
old version goes on with it.

What is replaced unread needs more than a number: an old version would write its own form over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bellhop.errors import TemporaryError
from bellhop.ports.store import ANY, Item, Store

SCHEMAS: Mapping[str, int] = {
    "catalog": 2,
    "choice": 2,
    "cluster": 4,
    "inventory": 2,
    "match": 2,
    "profile": 6,
}
"""The number of each kind of record, by the first word of its partition; 1 where it is not here.

    catalog   2  who changes the revision tells its shares, which readers ask
    choice    2  of a Set: who does not know Sets takes it for that of none, and deletes it
    cluster   2  `managed` was `eks`: who does not know it looks for a kubeconfig that is not stored
              3  `given`: who does not know it loses it, and labels of classifiers stay for ever
              4  `spec` has `paused` or `activeWindow`: who does not know those changes what is in a
                 cluster that is to be left as it is
    inventory 2  `adopts`: who does not know it removes what was adopted, which is to stay
    match     2  `held`: who does not know it withdraws what is held
    profile   2  `sync`: who does not know it applies what is to be tried dry; a Profile's, whose
                 name has its namespace: who does not know those marks its objects as another's
              3  `sync` may be OneTime: who does not know that applies what changes later
              4  `sync` may be ContinuousWithDriftDetection: who does not know it cannot read it;
                 `rollout`: who does not know it loses it, and never stops trying;
                 `account`: who does not know it applies with all rights what has a tenant's alone
              5  `checked`: who does not know it applies and removes what is to be checked before;
                 `rollout` has `after`, `awaited` and `share`: who does not keeps no order;
                 `pinned`: who does not know it brings what is declared, and undoes a rollback;
                 `scripted`: who does not know it takes a script for a template
              6  a RoleRequest's, by its name: who does not know those binds no role;
                 `hosting`: who does not know it brings to each cluster what is Local
"""

_FIRST = 1

_AS_BEFORE: Mapping[str, Callable[[Item], bool]] = {
    "choice": lambda item: "/" not in item.sort,
    "cluster": lambda item: (
        not item.value.get("given")
        and not item.value.get("managed")
        and not {"paused", "activeWindow"} & item.value.get("spec", {}).keys()
    ),
    "inventory": lambda item: item.value.get("adopts") is False,
    "match": lambda item: not item.value.get("held"),
    "profile": lambda item: (
        item.value.get("sync") == "Continuous"
        and not {"/", ":"}.intersection(item.value.get("name", ""))
        and not any(item.value.get("rollout", {}).values())
        and not item.value.get("account")
        and not item.value.get("checked")
        and not item.value.get("pinned")
        and not item.value.get("scripted")
        and not item.value.get("hosting")
    ),
}
"""Whether a record makes no use of what is new, by the first word of its partition."""


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
        if schema == _FIRST or _is_as_before(item):
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


def _is_as_before(item: Item) -> bool:
    is_so = _AS_BEFORE.get(item.partition.partition("/")[0])
    return is_so is not None and is_so(item)
