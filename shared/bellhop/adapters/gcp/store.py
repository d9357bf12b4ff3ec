"""The managed store in one collection of a Firestore database.

    id: digest of the partition : sort key, spelled    in the order of bytes
    place: the same once more                          the one field in an index, for who reads back
    partition, sort, value (JSON), expires, mark

A token is the time of the write, which Firestore gives, keeps for no two writes of a document, and
takes as a condition. A write that changes nothing would keep the old time: hence `mark`, drawn for
each. Where an item expires, its token says so too, since Firestore has no condition for that: it
deletes what has expired within a day or so, and everybody here looks at the clock.

A write that was not answered may have been done, and is tried again:

    put ABSENT, mark 1 ──► done, the answer is lost
    put ABSENT, mark 1 ──► refused; what is there is read: mark 1, so it was ours
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.firestore_v1.types import BatchGetDocumentsRequest, CommitRequest, RunQueryRequest
from msgspec.structs import replace

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.core.attempts import TRIES
from bellhop.errors import BusyError, UnreachableError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item
from bellhop.state.items import (
    after_all,
    check_bound,
    check_key,
    expiry_of,
    make_stale_error,
    text_of,
)

DATABASE = "(default)"
ITEMS = "items"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS = 1_000_000
_TOKEN = re.compile(r"(\d{1,17})(?:/(-?\d{1,18}))?")
_MARK_BYTES = 16

# Base 64 in an alphabet whose letters stand as their bytes do: what is spelled keeps its order, and
# 1,024 bytes become 1,366, of the 1,500 that an id may have.
_SPELLING = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
)
_DIGEST_LETTERS = 32

# The first page is for who looks for one item, each later one is twice as long, up to what a small
# function can hold.
_FIRST_PAGE = 64
_LONGEST_PAGE = 1024
_PAGE_BYTES = 4 * 1024 * 1024

_CHANGED, _ABSENT = "FAILED_PRECONDITION", "NOT_FOUND"
_REFUSED = frozenset({"ALREADY_EXISTS", _CHANGED, _ABSENT})
_HEAD = ("expires", "mark")

_Bound = tuple[str, bool] | None
"""A document's id, and whether it is within the range."""


class FirestoreStore:
    """Items in a collection that nobody else writes to, used by any number of processes."""

    def __init__(
        self,
        services: Services,
        *,
        clock: Clock,
        database: str = DATABASE,
        collection: str = ITEMS,
    ) -> None:
        self._services = services
        self._clock = clock
        self._collection = collection
        self._database = f"projects/{services.project}/databases/{database}"
        self._documents = f"{self._database}/documents"

    def get(self, partition: str, sort: str) -> Item | None:
        name = self._name(partition, sort)
        found = self._read(name, f"read the item {partition!r} {sort!r}")
        return None if found is None else self._alive(found)

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        name = self._name(item.partition, item.sort)
        fields: dict[str, Any] = {
            "partition": {"string_value": item.partition},
            "sort": {"string_value": item.sort},
            "place": {"string_value": name.rpartition("/")[2]},
            "value": {"string_value": text_of(item)},
            "mark": {"string_value": os.urandom(_MARK_BYTES).hex()},
        }
        expires_at = expiry_of(item)
        if expires_at is not None:
            fields["expires"] = {"timestamp_value": _timestamp(_microseconds(expires_at))}
        written_at = self._write(item, {"name": name, "fields": fields}, expect)
        return replace(item, token=_write_token(written_at, expires_at))

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        name, doing = self._name(partition, sort), f"delete the item {partition!r} {sort!r}"
        condition = self._condition(expect)
        if condition is None:
            raise make_stale_error("delete", partition, sort, expect)
        if expect is ANY or expect == ABSENT:
            # A document that has expired may be there still, and is none to who asks.
            found = self._read(name, doing, _HEAD)
            if found is None or self._is_expired(found):
                return False
            if expect == ABSENT:
                raise make_stale_error("delete", partition, sort, expect)
            condition = {"exists": True}
        try:
            self._commit({"delete": name}, condition, doing)
        except RefusedError as refused:
            self._see_database(name, doing, refused)
            if expect is ANY:
                return False
            raise make_stale_error("delete", partition, sort, expect) from refused
        return True

    def query(
        self,
        partition: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int | None = None,
        backwards: bool = False,
    ) -> Iterator[Item]:
        check_bound(partition, prefix)
        check_bound(partition, after)
        first, last = max(prefix, after), after_all(prefix)
        if not partition or (last is not None and first >= last):
            return
        begins = _digest(partition)
        # A semicolon is the letter after the colon.
        lower = (f"{begins}:{_encode_sort(first)}", not after or after != first)
        upper = (f"{begins}:{_encode_sort(last)}" if last else f"{begins};", False)
        doing = f"list the items of {partition!r}"
        yield from self._pages((lower, upper), limit, doing, backwards=backwards)

    def all(self) -> Iterator[Item]:
        """Yield all items; Google bills each read."""
        yield from self._pages((None, None), None, "read all items", backwards=False)

    def close(self) -> None:
        """Leave the connections open: their owner closes them."""

    def _write(self, item: Item, document: Mapping[str, Any], expect: str | None) -> int:
        """Write a document on a condition; return the time of the write in microseconds."""
        doing = f"write the item {item.partition!r} {item.sort!r}"
        condition = self._condition(expect)
        for _ in range(TRIES):
            if condition is None:
                raise make_stale_error("write", item.partition, item.sort, expect)
            try:
                return self._commit({"update": document}, condition, doing)
            except RefusedError as refused:
                if refused.code == _CHANGED and not refused.repeated and expect != ABSENT:
                    raise make_stale_error("write", item.partition, item.sort, expect) from refused
            found = self._read(document["name"], doing, _HEAD)
            if found and found.fields["mark"].string_value == _mark(document):
                return _time_of(found.update_time)
            condition = self._condition_over(found, expect)
        raise BusyError(f"cannot {doing}: others keep writing and deleting it")

    def _condition_over(self, found: Any, expect: str | None) -> dict[str, Any] | None:
        """Return the condition to write over what was found, where the first one did not hold."""
        if expect == ABSENT and found is not None:
            return {"update_time": found.update_time} if self._is_expired(found) else None
        return self._condition(expect) if expect in {ANY, ABSENT} else None

    def _condition(self, expect: str | None) -> dict[str, Any] | None:
        """Return Firestore's condition for what is expected; None if it cannot hold any more."""
        if expect is ANY:
            return {}
        if expect == ABSENT:
            return {"exists": False}
        found = _TOKEN.fullmatch(expect)
        if found is None or (found[2] and int(found[2]) <= _microseconds(self._clock.now())):
            return None
        return {"update_time": _timestamp(int(found[1]))}

    def _commit(self, write: Mapping[str, Any], condition: Mapping[str, Any], doing: str) -> int:
        """Make one write; return its time in microseconds.

        Raises:
            RefusedError: its condition does not hold, or the database is not there.
        """
        writes = [{**write, **({"current_document": condition} if condition else {})}]
        request = CommitRequest.wrap(CommitRequest.pb()(database=self._database, writes=writes))
        answer = self._services.call("firestore", "commit", request, doing=doing, taken=_REFUSED)
        return _time_of(type(answer).pb(answer).write_results[0].update_time)

    def _see_database(self, name: str, doing: str, refused: RefusedError) -> None:
        """Raise an error if it was the database that was not there."""
        if refused.code == _ABSENT:
            self._read(name, doing, _HEAD)

    def _read(self, name: str, doing: str, fields: Iterable[str] = ()) -> Any:
        """Return a document, or some of its fields; None if it is not there.

        Read as one of a list, it is reported as missing: an error would say the same of a
        document and of a database that are not there.
        """
        mask = {"mask": {"field_paths": list(fields)}} if fields else {}
        request = BatchGetDocumentsRequest.wrap(
            BatchGetDocumentsRequest.pb()(database=self._database, documents=[name], **mask)
        )

        def read(answers: Any) -> Any:
            for each in answers:
                raw = type(each).pb(each)
                if raw.HasField("found"):
                    return raw.found
                if raw.missing:
                    return None
            raise UnreachableError(f"cannot {doing}: Firestore answers nothing")

        return self._services.call(
            "firestore", "batch_get_documents", request, doing=doing, read=read
        )

    def _pages(
        self, bounds: tuple[_Bound, _Bound], limit: int | None, doing: str, *, backwards: bool
    ) -> Iterator[Item]:
        first, last = reversed(bounds) if backwards else bounds
        left, page = limit, _FIRST_PAGE
        while left is None or left > 0:
            # What has expired counts for Firestore's limit, and not for ours: hence the loop.
            asked = page if left is None else min(left, page)
            query = self._query(first, last, asked, backwards=backwards)
            found, more = self._page(query, asked, doing)
            for item in filter(None, map(self._alive, found)):
                yield item
                left = left if left is None else left - 1
            if not more:
                return
            first = (found[-1].name.rpartition("/")[2], False)
            page = min(page * 2, _LONGEST_PAGE)

    def _query(self, first: _Bound, last: _Bound, limit: int, *, backwards: bool) -> dict[str, Any]:
        """Ask for documents in the order of their ids; backwards by a field that repeats them.

        Firestore has no scan of names backwards without an index of its own for it.
        """
        path, direction = ("place", "DESCENDING") if backwards else ("__name__", "ASCENDING")

        def cursor(bound: tuple[str, bool], *, before: bool) -> dict[str, Any]:
            name = f"{self._documents}/{self._collection}/{bound[0]}"
            value = {"string_value": bound[0]} if backwards else {"reference_value": name}
            return {"values": [value], "before": before}

        query: dict[str, Any] = {
            "from_": [{"collection_id": self._collection}],
            "order_by": [{"field": {"field_path": path}, "direction": direction}],
            "limit": {"value": limit},
        }
        if first:
            query["start_at"] = cursor(first, before=first[1])
        if last:
            query["end_at"] = cursor(last, before=not last[1])
        return query

    def _page(self, query: Mapping[str, Any], limit: int, doing: str) -> tuple[list[Any], bool]:
        """Return documents, and whether there may be more; it ends early where they are large."""
        request = RunQueryRequest.wrap(
            RunQueryRequest.pb()(parent=self._documents, structured_query=query)
        )

        def read(answers: Any) -> tuple[list[Any], bool]:
            found: list[Any] = []
            size = 0
            for each in answers:
                raw = type(each).pb(each)
                if raw.HasField("document"):
                    found.append(raw.document)
                    size += len(raw.document.fields["value"].string_value)
                if size > _PAGE_BYTES:
                    answers.cancel()
                    return found, True
            return found, len(found) == limit

        found: tuple[list[Any], bool] = self._services.call(
            "firestore", "run_query", request, doing=doing, read=read
        )
        return found

    def _name(self, partition: str, sort: str) -> str:
        check_key(partition, sort)
        place = f"{self._documents}/{self._collection}"
        return f"{place}/{_digest(partition)}:{_encode_sort(sort)}"

    def _is_expired(self, document: Any) -> bool:
        expires_at = _expiry(document)
        return expires_at is not None and expires_at <= self._clock.now()

    def _alive(self, document: Any) -> Item | None:
        if self._is_expired(document):
            return None
        fields, expires_at = document.fields, _expiry(document)
        return Item(
            fields["partition"].string_value,
            fields["sort"].string_value,
            json.loads(fields["value"].string_value),
            _write_token(_time_of(document.update_time), expires_at),
            expires_at,
        )


def _digest(partition: str) -> str:
    """Return where a partition begins: anywhere among the others, so that load spreads."""
    return hashlib.sha256(partition.encode()).hexdigest()[:_DIGEST_LETTERS]


def _encode_sort(sort: str) -> str:
    return base64.b64encode(sort.encode()).rstrip(b"=").translate(_SPELLING).decode()


def _mark(document: Mapping[str, Any]) -> str:
    mark: str = document["fields"]["mark"]["string_value"]
    return mark


def _write_token(written_at: int, expires_at: datetime | None) -> str:
    return f"{written_at}" if expires_at is None else f"{written_at}/{_microseconds(expires_at)}"


def _expiry(document: Any) -> datetime | None:
    if "expires" not in document.fields:
        return None
    return _EPOCH + timedelta(microseconds=_time_of(document.fields["expires"].timestamp_value))


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _timestamp(microseconds: int) -> dict[str, int]:
    seconds, rest = divmod(microseconds, _MICROSECONDS)
    return {"seconds": seconds, "nanos": rest * 1_000}


def _time_of(timestamp: Any) -> int:
    return int(timestamp.seconds) * _MICROSECONDS + int(timestamp.nanos) // 1_000
