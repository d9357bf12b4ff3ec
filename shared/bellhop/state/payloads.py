"""Records whose payload is sealed: a small head that is listed, and with it or apart the payload.

  payload, under a fresh name ─► head that points to it ─► the payload before it is deleted

A short payload, as most objects have, lies in its head: one write and one read are all there is.
Another is written once, in a partition of its own, or in the blob store when it is large. Its name
holds the token of the head that it was to follow: since tokens never come back, a worker that
replaces that head knows that payloads of workers that lost, or died, can never be pointed to, and
deletes them. A first head has no token to follow, so what a death leaves there goes when it is old.

Long fields of a very large head, as the destinations of a profile for all of a fleet, lie with
the payload: no head reaches an item's limit, and none has to be opened to be listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import InvalidError, LostWriteError, MissingError, StaleError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Blobs, Item, Store
from bellhop.state.blob_garbage import BlobGarbage, blob_name
from bellhop.state.concurrency import until_written
from bellhop.state.heads import (
    INLINE,
    NAMES,
    PLACES,
    Heads,
    clear_fields,
    digest,
    digest_of_long,
    has_long,
    kept_places,
    payload_place,
    shard,
    split_head,
    with_value,
)
from bellhop.state.sealer import Sealer, as_bytes, as_text

SHORT = 2048
"""Sealed bytes up to this lie in the head, which is listed with them: a few more bytes there cost
less than a second item, that is written, read and deleted apart."""

SHARDS = "0123456789abcdef"
"""The payloads of one partition lie in as many: they are larger than their heads."""

_OLD = timedelta(days=1)
"""Longer than anybody takes between a payload and its head."""


class Sealed(Struct, frozen=True):
    """A record as it was read: its clear fields and its payload."""

    item: Item
    head: Mapping[str, Any]
    payload: Any


class Payloads:
    """Heads and payloads over a store and a blob store."""

    def __init__(
        self, store: Store, blobs: Blobs, sealer: Sealer, clock: Clock, *, short: int = SHORT
    ) -> None:
        self.store = store
        self._blobs = blobs
        self._sealer = sealer
        self._clock = clock
        self._short = short
        self._heads = Heads()
        self.trash = BlobGarbage(store, blobs)

    def apart(self) -> Payloads:
        """Return payloads of which none lies in its head, for heads that are counted."""
        return Payloads(self.store, self._blobs, self._sealer, self._clock, short=0)

    # Reading ----------------------------------------------------------------------------------

    def get(self, partition: str, sort: str) -> Sealed | None:
        """Read one record.

        Raises:
            MissingError: its payload is lost.
        """
        item = self.store.get(partition, sort)
        return self.open(item) if item else None

    def open(self, item: Item) -> Sealed | None:
        """Read what a head points to; the newer head, or None, where it was just replaced.

        Raises:
            MissingError: the payload is lost, and the head still points to it.
        """
        try:
            return self._opened(item)
        except MissingError:
            return self._open_newest(item.partition, item.sort)

    @until_written("read '{partition} {sort}'", reason="writers are quicker")
    def _open_newest(self, partition: str, sort: str) -> Sealed | None:
        item = self.store.get(partition, sort)
        if item is None:
            return None
        try:
            return self._opened(item)
        except MissingError as error:
            now = self.store.get(partition, sort)
            if now is None or now.token != item.token:
                raise LostWriteError(f"cannot read '{partition} {sort}': it changes") from error
            raise MissingError(
                f"cannot read the record '{partition} {sort}': its payload is lost; write it"
                " again, or delete it"
            ) from error

    def head(self, item: Item) -> Mapping[str, Any]:
        """Read the clear fields of a record, without its payload: of a `wide` one the short."""
        return clear_fields(item)

    def wide(self, item: Item) -> bool:
        """Say whether a head has long fields that lie with its payload."""
        return bool(item.value.get("wide"))

    def all(self, partition: str) -> Iterator[Sealed]:
        """Yield the records of a partition with their payloads.

        Raises:
            MissingError: the payload of one is lost.
        """
        for item in self.store.query(partition):
            opened = self.open(item)
            if opened:
                yield opened

    def _opened(self, item: Item) -> Sealed:
        self._heads.add(item)
        payload = self._unsealed(item, item.value)
        if item.value.get("wide"):
            return Sealed(item, {**clear_fields(item), **payload["long"]}, payload["payload"])
        return Sealed(item, clear_fields(item), payload)

    def _unsealed(self, item: Item, places: Mapping[str, Any]) -> Any:
        """Read what an item, or what it replaced, has as its payload; None if that is nothing."""
        if places.get("blob"):
            sealed = self._blobs.get(places["blob"])
        elif places.get("payload"):
            kept = self.store.get(shard(item.partition, places["payload"]), places["payload"])
            if kept is None:
                raise MissingError(f"there is no payload {places['payload']!r}")
            sealed = as_bytes(kept.value["sealed"])
        elif "sealed" in places:
            sealed = as_bytes(places["sealed"])
        else:
            return None
        return self._sealer.open(sealed, f"{item.partition} {item.sort}")

    def last(self, item: Item) -> Any:
        """Read the payload that a head had before it was retired; None where it is kept no more."""
        try:
            return self._unsealed(item, item.value.get("was") or {})
        except MissingError:
            return None

    # Writing ----------------------------------------------------------------------------------

    def put(
        self,
        partition: str,
        sort: str,
        head: Mapping[str, Any],
        payload: Any,
        *,
        expect: str | None = ANY,
    ) -> str:
        """Write a record and return its head's token; a payload that is None takes no item.

        Raises:
            StaleError: something else than `expect` is there.
        """
        new = Item(partition, sort, head)
        if expect != ANY:
            return self.follow(self._expected(new, expect), new, payload)
        return self._overwrite(new, payload)

    @until_written("write '{new.partition} {new.sort}'")
    def _overwrite(self, new: Item, payload: Any) -> str:
        return self.follow(self.store.get(new.partition, new.sort), new, payload)

    def follow(self, old: Item | None, new: Item, payload: Any) -> str:
        """Write a record after the one that was read, or after none, and return its token.

        Raises:
            StaleError: something else is there by now.
        """
        before = old.token if old else ABSENT
        short, long = split_head(new.value)
        if old and payload is None and long and self._lies_there(old, long):
            return self._point(old, with_value(new, short))
        value = self._lay_down(with_value(new, short), long, payload, before)
        apart = bool(value.get("payload") or (old and kept_places(old).get("payload")))
        # Where payloads lie in their heads there are none to look for.
        leavings = self._leavings(old, new, value) if apart else []
        if old:
            self._discard(old)
        try:
            token = self._heads.add(self.store.put(with_value(new, value), expect=before))
        except StaleError:
            # A store's client that was not answered may have repeated a write that was done.
            now = self.store.get(new.partition, new.sort)
            if (
                now is None
                or not payload_place(value)
                or payload_place(now.value) != payload_place(value)
            ):
                self._take_back(new.partition, value)
                raise
            token = now.token
        except InvalidError:
            self._take_back(new.partition, value)
            raise
        self._delete(new.partition, leavings)
        return token

    def retire(self, old: Item, new: Item) -> str:
        """Write a head that has no payload, and keep that of the one before for `last` a while.

        A payload that lay in its head is kept in this one, for as long as it exists; a payload that
        lies apart is kept for a day. This costs no more calls than deleting it. Returns the token.

        Raises:
            StaleError: something else is there by now.
        """
        kept = kept_places(old)
        was = {name: kept[name] for name in PLACES if name in kept}
        if old.value.get("wide") or not was:
            return self.follow(old, new, None)
        # Asked for before the write, as leavings are.
        found = list(self._laid(new)) if "payload" in was else []
        self._discard(old)
        item = with_value(new, {**new.value, "was": was})
        token = self._heads.add(self.store.put(item, expect=old.token))
        for each in found:
            if each.sort == was["payload"]:
                self.store.put(replace(each, expires_at=self._clock.now() + _OLD))
            elif not each.sort.startswith(f"{digest(new.sort)}/-/"):
                self.store.delete(each.partition, each.sort)
        return token

    def put_head(
        self, partition: str, sort: str, head: Mapping[str, Any], *, expect: str | None = ANY
    ) -> str:
        """Write the clear fields of a record that is there; its payload stays what it is.

        Raises:
            StaleError: something else than `expect` is there, or nothing.
        """
        new = Item(partition, sort, head)
        old = self.store.get(partition, sort) if expect == ANY else self._expected(new, expect)
        if old is None:
            raise LostWriteError(f"cannot write '{partition} {sort}': another writer was quicker")
        short, long = split_head(head)
        if not has_long(old, long):
            return self.follow(old, new, self._opened(old).payload)
        return self._point(old, with_value(new, short))

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        """Delete a record; say whether it was there.

        Raises:
            StaleError: something else than `expect` is there, or nothing where it is a token.
        """
        if expect == ANY:
            return self._delete_any(partition, sort)
        return self._delete_read(partition, sort, self.store.get(partition, sort), expect)

    @until_written("delete '{partition} {sort}'")
    def _delete_any(self, partition: str, sort: str) -> bool:
        old = self.store.get(partition, sort)
        return self._delete_read(partition, sort, old, old.token if old else ANY)

    def _delete_read(self, partition: str, sort: str, old: Item | None, expect: str | None) -> bool:
        if old is None:
            return self.store.delete(partition, sort, expect=expect)
        leavings = self._leavings(old, old, {})
        self._discard(old)
        self.store.delete(partition, sort, expect=expect)
        self._delete(partition, leavings)
        return True

    def forget(self, partition: str) -> None:
        """Delete all records of a partition, whatever became of their payloads."""
        for item in self.store.query(partition):
            self._discard(item)
            self.store.delete(partition, item.sort)
        for each in SHARDS:
            place = f"payload/{partition}/{each}"
            for item in self.store.query(place):
                self.store.delete(place, item.sort)

    # Payloads -----------------------------------------------------------------------------------

    def _expected(self, new: Item, expect: str | None) -> Item | None:
        """Return the head that is to be replaced, by its token; None where none is to be there.

        A cached head is not read again: the conditional write checks that it is still there.

        Raises:
            StaleError: something else is there.
        """
        if expect == ABSENT:
            return None
        old = self._heads.get(expect) or self.store.get(new.partition, new.sort)
        if old is None or old.token != expect:
            raise LostWriteError(
                f"cannot write '{new.partition} {new.sort}': another writer was quicker"
            )
        return old

    def _lies_there(self, old: Item, long: Mapping[str, Any]) -> bool:
        """Say whether all that is to be sealed is what a head points to, and is not lost."""
        try:
            return has_long(old, long) and bool(old.value["alone"] and self._opened(old))
        except MissingError:
            return False

    def _point(self, old: Item, new: Item) -> str:
        """Write a head that points to what the one before it points to, and return its token."""
        kept = {name: old.value[name] for name in NAMES if name in old.value}
        return self._heads.add(
            self.store.put(with_value(new, {**new.value, **kept}), expect=old.token)
        )

    def _lay_down(
        self, new: Item, long: Mapping[str, Any], payload: Any, before: str
    ) -> dict[str, Any]:
        """Write a payload, and what is long in its head; return the head that holds or names it."""
        value = dict(new.value)
        if long:
            value |= {"wide": digest_of_long(long), "alone": payload is None}
            payload = {"long": long, "payload": payload}
        if payload is None:
            return value
        sealed = self._sealer.seal(payload, f"{new.partition} {new.sort}")
        if len(sealed) <= self._short:
            return {**value, "sealed": as_text(sealed)}
        if len(sealed) > INLINE:
            # The name is the blob's for ever: a backup of the store still finds what it names.
            name = blob_name(new.partition, new.sort)
            self.trash.put(name, new.partition, new.sort, self._clock.now())
            self._blobs.put(name, sealed)
            return {**value, "blob": name}
        name = f"{digest(new.sort)}/{before or '-'}/{os.urandom(8).hex()}"
        at = self._clock.now().isoformat()
        kept = {"sealed": as_text(sealed), "at": at}
        self.store.put(Item(shard(new.partition, name), name, kept))
        return {**value, "payload": name}

    def _leavings(self, old: Item | None, new: Item, value: Mapping[str, Any]) -> list[str]:
        """Name the payloads that nobody can point to any more once `old` is replaced by `value`.

        Asked for before the write: while `old` is the head no payload follows a later one, and
        those that follow an earlier one, or this one, come too late.
        """
        prefix = f"{digest(new.sort)}/"
        place = kept_places(old).get("payload") if old else None
        oldest = self._clock.now() - _OLD
        return [
            item.sort
            for item in self._laid(new)
            if item.sort != value.get("payload")
            and (
                item.sort == place
                or not item.sort.startswith(f"{prefix}-/")
                or datetime.fromisoformat(item.value["at"]) < oldest
            )
        ]

    def _laid(self, new: Item) -> Iterator[Item]:
        """Yield the payloads of a record that lie apart."""
        prefix = f"{digest(new.sort)}/"
        return self.store.query(shard(new.partition, prefix), prefix=prefix)

    def _take_back(self, partition: str, value: Mapping[str, Any]) -> None:
        if value.get("payload"):
            self._delete(partition, [value["payload"]])

    def _delete(self, partition: str, names: list[str]) -> None:
        for name in names:
            self.store.delete(shard(partition, name), name)

    def _discard(self, old: Item) -> None:
        if old.value.get("blob"):
            self.trash.put(old.value["blob"], old.partition, old.sort, self._clock.now())
