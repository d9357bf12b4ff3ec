"""Heads of sealed records: their clear fields, and where their payloads lie."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from bellhop.ports.store import Item

INLINE = 128 * 1024
"""Sealed bytes above this go to the blob store, and of a head above it what is long is sealed with
its payload: in text both are far below ITEM_LIMIT."""

_LONG = 1024
"""From how many bytes on a field of such a head is long; a record has few fields."""

_REMEMBERED = 128
"""Heads of which it is known what they were written or read as: about what is worked on."""

PLACES = ("payload", "blob", "sealed")
"""Of an item: where its payload is, or the payload itself."""

NAMES = (*PLACES, "wide", "alone", "was")
"""Of an item, beside its clear fields: where the payload is, a digest of what is sealed with it
because it is long, and whether that is all there is; where that of the head before it is."""


class Heads:
    """Heads as they were written or read last, by their tokens, which never come back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: OrderedDict[str, Item] = OrderedDict()

    def add(self, item: Item) -> str:
        """Remember a head, and return its token."""
        with self._lock:
            self._items[item.token] = item
            if len(self._items) > _REMEMBERED:
                self._items.popitem(last=False)
        return item.token

    def get(self, token: str | None) -> Item | None:
        """Return the head of a token, if it is remembered."""
        with self._lock:
            return self._items.get(token or "")


def with_value(new: Item, value: Mapping[str, Any]) -> Item:
    """Return an item with another value."""
    return Item(new.partition, new.sort, value, expires_at=new.expires_at)


def clear_fields(item: Item) -> Mapping[str, Any]:
    """Return the fields of a head that are not about its payload."""
    return {name: each for name, each in item.value.items() if name not in NAMES}


def kept_places(item: Item) -> Mapping[str, Any]:
    """Return where a head's payload is, or the one of the head that it has retired."""
    kept: Mapping[str, Any] = item.value.get("was") or item.value
    return kept


def payload_place(value: Mapping[str, Any]) -> str | None:
    """Name a write: where its payload is or, as no sealing comes twice, what it is."""
    place: str | None = value.get("payload") or value.get("blob") or value.get("sealed")
    return place


def split_head(head: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Part a head that is very large into its short fields and the long ones."""
    if len(json.dumps(dict(head))) <= INLINE:
        return head, {}
    sizes = {name: len(json.dumps(value)) for name, value in head.items()}
    short = {name: value for name, value in head.items() if sizes[name] <= _LONG}
    return short, {name: value for name, value in head.items() if name not in short}


def has_long(item: Item, long: Mapping[str, Any]) -> bool:
    """Say whether these long fields, be it none, are the ones that lie with a head's payload."""
    return bool(item.value.get("wide", "") == (digest_of_long(long) if long else ""))


def digest_of_long(long: Mapping[str, Any]) -> str:
    """Return the digest by which long fields are compared."""
    return digest(json.dumps(long, sort_keys=True))


def digest(sort: str) -> str:
    """Return a short digest of a sort key."""
    return hashlib.sha256(sort.encode()).hexdigest()[:32]


def shard(partition: str, name: str) -> str:
    """Return the partition of a payload that lies apart, by its name."""
    return f"payload/{partition}/{name[0]}"
