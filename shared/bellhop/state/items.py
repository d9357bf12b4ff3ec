"""Checks that every store makes of an item before it writes it, with the same errors."""

from __future__ import annotations

import json
import sys
from datetime import datetime

from bellhop.errors import InvalidError, LostWriteError, TooLargeError
from bellhop.ports.store import ABSENT, ITEM_LIMIT, KEY_LIMIT, Item

_FIRST_SURROGATE, _AFTER_SURROGATES = 0xD800, 0xE000

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=dict).encode


def check_key(partition: str, sort: str) -> None:
    """See that a store takes a key.

    Raises:
        InvalidError: a part of it is empty, or not Unicode.
        TooLargeError: a part of it exceeds KEY_LIMIT.
    """
    if not partition or not sort:
        raise InvalidError(f"cannot use the key {partition!r} {sort!r}: a part of it is empty")
    check_bound(partition, sort)


def check_bound(partition: str, sort: str) -> None:
    """See that a store can look for what lies beside a key, which need not be one.

    Raises:
        InvalidError: it is not Unicode.
        TooLargeError: a part of it exceeds KEY_LIMIT.
    """
    if partition.isascii() and sort.isascii() and len(partition) + len(sort) <= KEY_LIMIT:
        return
    try:
        longest = max(len(partition.encode()), len(sort.encode()))
    except UnicodeEncodeError as error:
        raise InvalidError("cannot use a key: it is not valid Unicode") from error
    if longest > KEY_LIMIT:
        raise TooLargeError(
            f"cannot use the key {partition!r} {sort!r}: its {longest} bytes exceed the store's"
            f" {KEY_LIMIT}"
        )


def text_of(item: Item) -> str:
    """Write an item's value as JSON in ASCII.

    Raises:
        InvalidError: it is not JSON.
        TooLargeError: with its keys it exceeds ITEM_LIMIT.
    """
    try:
        text = _encode(dict(item.value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            f"cannot write the item {item.partition!r} {item.sort!r}: it is not JSON"
        ) from error
    size = len(text) + len(item.partition.encode()) + len(item.sort.encode())
    if size > ITEM_LIMIT:
        raise TooLargeError(
            f"cannot write the item {item.partition!r} {item.sort!r}: its {size} bytes exceed the"
            f" store's {ITEM_LIMIT}"
        )
    return text


def expiry_of(item: Item) -> datetime | None:
    """Return when an item goes.

    Raises:
        InvalidError: the time has no zone.
    """
    if item.expires_at is not None and item.expires_at.utcoffset() is None:
        raise InvalidError(
            f"cannot write the item {item.partition!r} {item.sort!r}: its expiry has no time zone"
        )
    return item.expires_at


def after_all(prefix: str) -> str | None:
    """Return the first key after all that start with `prefix`; None if there is none.

    UTF-8 keeps the order of code points, so that is the prefix with its last one raised.
    """
    trimmed = prefix.rstrip(chr(sys.maxunicode))
    if not trimmed:
        return None
    last = ord(trimmed[-1]) + 1
    return trimmed[:-1] + chr(_AFTER_SURROGATES if last == _FIRST_SURROGATE else last)


def make_stale_error(verb: str, partition: str, sort: str, expect: str | None) -> LostWriteError:
    """Say that something else is there than what was expected."""
    expected = "nothing" if expect == ABSENT else f"the write {expect}"
    return LostWriteError(
        f"cannot {verb} the item {partition!r} {sort!r}: {expected} was expected and is not what is"
        " there; read it again"
    )
