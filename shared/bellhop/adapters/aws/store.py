"""The managed store in one DynamoDB table, and the blob store in one S3 bucket.

    partition (S) | sort (S) | value (S, JSON) | token (S) | expires_at (N) | expires (N)

`expires_at` is the instant in microseconds, by which every reader and every condition goes.
`expires` is the same in whole seconds, rounded up: by it DynamoDB deletes the item, some day.

A write that was not answered may have been done, and is tried again:

    put ABSENT, token 1 ──► done, the answer is lost
    put ABSENT, token 2 ──► refused, with the item there: token 1, so it was ours

Each attempt has a token of its own. With one for both, a writer who came between them and left
would find his predecessor's token again.

S3 answers a read with the last finished write, and replaces an object whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.errors import MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, KEY_LIMIT, Item, object_key
from bellhop.state.items import (
    after_all,
    check_bound,
    check_key,
    expiry_of,
    make_stale_error,
    text_of,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS = 1_000_000
_TOKEN_BYTES = 16

_REFUSED = frozenset({"ConditionalCheckFailedException"})
# Names with a sign before them: `partition`, `value` and `token` are words of DynamoDB's own.
_EXPIRED = "attribute_not_exists(#token) OR #expires_at <= :now"
_THERE = "#token = :expect AND (attribute_not_exists(#expires_at) OR #expires_at > :now)"
_NAMES = {"#token": "token", "#expires_at": "expires_at"}

# The first page is for who looks for one item, each later one is twice as long, up to the
# megabyte at which DynamoDB ends it by itself.
_FIRST_PAGE = 64

_Row = Mapping[str, Mapping[str, str]]


class DynamoStore:
    """Items in a table with the keys `partition` and `sort`, used by any number of processes."""

    def __init__(self, services: Services, table: str, *, clock: Clock) -> None:
        self._services = services
        self._table = table
        self._clock = clock

    def get(self, partition: str, sort: str) -> Item | None:
        request = {**self._key(partition, sort), "ConsistentRead": True}
        answer = self._call("get_item", request, f"read the item {partition!r} {sort!r}")
        return self._alive(answer.get("Item"))

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        row = {
            **self._key(item.partition, item.sort)["Key"],
            "value": {"S": text_of(item)},
            **_expiry(expiry_of(item)),
        }
        condition = self._condition(expect, _EXPIRED if expect == ABSENT else _THERE)
        tokens: list[str] = []

        def request() -> dict[str, Any]:
            tokens.append(os.urandom(_TOKEN_BYTES).hex())
            fresh = {**row, "token": {"S": tokens[-1]}}
            return {"TableName": self._table, "Item": fresh, **condition}

        doing = f"write the item {item.partition!r} {item.sort!r}"
        try:
            self._services.call("dynamodb", "put_item", request, doing=doing, taken=_REFUSED)
        except RefusedError as refused:
            there = refused.answer.get("Item", {}).get("token", {}).get("S")
            if there not in tokens:
                raise make_stale_error("write", item.partition, item.sort, expect) from refused
            return replace(item, token=there)
        return replace(item, token=tokens[-1])

    def delete(self, partition: str, sort: str, *, expect: str | None = ANY) -> bool:
        if expect == ABSENT:
            if self.get(partition, sort) is None:
                return False
            raise make_stale_error("delete", partition, sort, expect)
        request = {
            **self._key(partition, sort),
            "ReturnValues": "ALL_OLD",
            **self._condition(expect, _THERE),
        }
        try:
            answer = self._call("delete_item", request, f"delete the item {partition!r} {sort!r}")
        except RefusedError as refused:
            raise make_stale_error("delete", partition, sort, expect) from refused
        return self._alive(answer.get("Attributes")) is not None

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
        if last is not None and first > last:
            return
        request = self._range(partition, first, last)
        request["ScanIndexForward"] = not backwards
        if after and after == first and not backwards:
            request["ExclusiveStartKey"] = {"partition": {"S": partition}, "sort": {"S": after}}
        left, page = limit, _FIRST_PAGE
        while left is None or left > 0:
            # What has expired counts for DynamoDB's limit, and not for ours: hence the loop.
            request["Limit"] = page if left is None else min(left, page)
            answer = self._call("query", request, f"list the items of {partition!r}")
            for item in filter(None, map(self._alive, answer["Items"])):
                # The bounds of a range are part of it.
                if item.sort.startswith(prefix) and item.sort != after:
                    yield item
                    left = left if left is None else left - 1
                    if left == 0:
                        return
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            page *= 2

    def all(self) -> Iterator[Item]:
        """Yield all items, a megabyte at a time: AWS bills by what is read."""
        request: dict[str, Any] = {"TableName": self._table, "ConsistentRead": True}
        while True:
            answer = self._call("scan", request, "read all items")
            yield from filter(None, map(self._alive, answer["Items"]))
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def close(self) -> None:
        """Leave the connections open: their owner closes them."""

    def _call(self, operation: str, request: Mapping[str, Any], doing: str) -> dict[str, Any]:
        return self._services.call("dynamodb", operation, request, doing=doing, taken=_REFUSED)

    def _key(self, partition: str, sort: str) -> dict[str, Any]:
        check_key(partition, sort)
        key = {"partition": {"S": partition}, "sort": {"S": sort}}
        return {"TableName": self._table, "Key": key}

    def _condition(self, expect: str | None, expression: str) -> dict[str, Any]:
        if expect is ANY:
            return {}
        values = {":now": {"N": str(_microseconds(self._clock.now()))}}
        if ":expect" in expression:
            values[":expect"] = {"S": expect}
        return {
            "ConditionExpression": expression,
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _range(self, partition: str, first: str, last: str | None) -> dict[str, Any]:
        """Ask for a partition's items from `first` to `last`, both included."""
        if last and len(last.encode()) > KEY_LIMIT:
            last = None  # No key is so long; what lies beyond the prefix is left out later.
        condition = "#partition = :partition"
        names = {"#partition": "partition"}
        values = {":partition": {"S": partition}}
        # `last` follows a prefix, so that there is a `first` wherever there is a `last`.
        if first:
            condition += " AND #sort BETWEEN :first AND :last" if last else " AND #sort >= :first"
            names["#sort"] = "sort"
            values |= {":first": {"S": first}} | ({":last": {"S": last}} if last else {})
        return {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }

    def _alive(self, row: _Row | None) -> Item | None:
        if row is None:
            return None
        at = row.get("expires_at")
        expires_at = None if at is None else _EPOCH + timedelta(microseconds=int(at["N"]))
        if expires_at is not None and expires_at <= self._clock.now():
            return None
        value = json.loads(row["value"]["S"])
        return Item(row["partition"]["S"], row["sort"]["S"], value, row["token"]["S"], expires_at)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _expiry(at: datetime | None) -> dict[str, Any]:
    if at is None:
        return {}
    exact = _microseconds(at)
    # Rounded up: DynamoDB may delete late, and never early.
    return {"expires_at": {"N": str(exact)}, "expires": {"N": str(-(-exact // _MICROSECONDS))}}


_ABSENT = frozenset({"NoSuchKey"})


class S3Blobs:
    """Bytes by name, in a bucket that the installation's role may list.

    Without that right S3 answers that it denies what is not there.
    """

    def __init__(self, services: Services, bucket: str) -> None:
        self._services = services
        self._bucket = bucket

    def get(self, name: str) -> bytes:
        try:
            answer = self._call("get_object", name, f"read the blob {name!r}")
        except RefusedError as error:
            raise MissingError(f"there is no blob {name!r}") from error
        value: bytes = answer["Body"]
        return value

    def put(self, name: str, value: bytes) -> None:
        self._call("put_object", name, f"write the blob {name!r}", Body=value)

    def delete(self, name: str) -> None:
        self._call("delete_object", name, f"delete the blob {name!r}")

    def _call(self, operation: str, name: str, doing: str, **more: Any) -> dict[str, Any]:
        request = {"Bucket": self._bucket, "Key": object_key(name), **more}
        return self._services.call("s3", operation, request, doing=doing, taken=_ABSENT)
