"""AWS in memory, on a simulated clock, with the limits that its services publish.

It answers what the adapters ask, in the SDK's own words, and knows no more expressions than theirs.
A key's limits are those of each second. A new table's four partitions have five minutes' credit of
what they did not use, as DynamoDB has it, and are never split: keys which fall together stay
together.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

from botocore.exceptions import ClientError

from bellhop.adapters.aws.services import Services
from tests.fakes.clock import START

KEY_WRITES, KEY_READS = 1000, 3000
"""Units a second of one partition of DynamoDB, and so of one partition key."""

TABLE_WRITES, TABLE_READS = 4000, 12_000
"""Units a second of a new table on demand: four partitions; later twice the highest before."""

CREDIT = 300
"""Seconds of which a partition keeps what it did not use."""

IN_FLIGHT = 120_000
BATCH, BATCH_BYTES = 10, 1024 * 1024
SECRETS = 10_000
"""Values read a second; a key of KMS takes as many or more."""

BLOBS_READ, BLOBS_WRITTEN = 5500, 3500
"""Requests a second of one prefix of S3."""

LATENCY = {"dynamodb": 0.006, "sqs": 0.010, "secretsmanager": 0.025, "s3": 0.025}
"""Seconds, assumed."""

_GROWS = 1800
_REMEMBERED = 300
"""Seconds; an invocation that is played whole ends within one minute."""
_REFUSED = {
    "dynamodb": "ThrottlingException",
    "secretsmanager": "ThrottlingException",
    "s3": "SlowDown",
}


class SimulatedClock:
    """The time of the function at work: some began later, and are played earlier."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def steady(self) -> timedelta:
        """Return the same: it never jumps."""
        return timedelta(seconds=self.seconds)

    def rest(self, seconds: float) -> None:
        """Let time pass for who is at work."""
        self.seconds += seconds


@dataclass
class Meters:
    """What was used in each second, the most of it, and what was refused.

    Of each key only the last minutes are remembered: in an hour they are millions.
    """

    used: defaultdict[int, Counter[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    most: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    refused_at: Counter[int] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)

    def take(self, limits: Mapping[tuple[str, str], float], second: int, units: int) -> str:
        """Use units of several limits at once; name the one that is exceeded, and use none then."""
        if second not in self.used:
            self._forget(second - _REMEMBERED)
        used = self.used[second]
        for of, limit in limits.items():
            if used[of] + units > limit:
                return of[0]
        for of in limits:
            used[of] += units
            self.most[of] = max(self.most[of], used[of])
        return ""

    def peaks(self, kind: str) -> list[tuple[str, int]]:
        """Return the most that each name used in a second, highest first."""
        found = Counter({name: most for (each, name), most in self.most.items() if each == kind})
        return found.most_common()

    def _forget(self, second: int) -> None:
        """Keep of a second that is long over what the table and its partitions used."""
        if second in self.used:
            used = self.used[second]
            self.used[second] = Counter(
                {of: units for of, units in used.items() if not of[0].endswith(" key")}
            )


@dataclass
class Sent:
    """A message in a queue."""

    number: str
    entry: Mapping[str, Any]
    sent_at: float
    visible_at: float
    tries: int = 0


class Aws:
    """Tables, queues, secrets and blobs; `free` lifts all limits, for who makes ready."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.meters = Meters()
        self.free = False
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._sorts: dict[str, list[str]] = defaultdict(list)
        self._values: dict[tuple[str, str], bytes] = {}
        self._peaks = {"write": 0, "read": 0}
        self._credits: dict[tuple[str, str], tuple[int, float]] = {}
        self._numbers = itertools.count()
        self.waiting: dict[str, list[tuple[float, int, Sent]]] = defaultdict(list)
        self.in_hand: dict[str, dict[str, Sent]] = defaultdict(dict)
        self.most_in_hand: Counter[str] = Counter()

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Measure and limit nothing for a while."""
        self.free = True
        try:
            yield
        finally:
            self.free = False

    def ask(self, service: str, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request, after the time that it takes."""
        if not self.free:
            self.clock.rest(LATENCY[service])
            self.meters.asked[f"{service}:{operation}"] += 1
        answer: dict[str, Any] = getattr(self, f"_{service}_{operation}")(request)
        return answer

    # DynamoDB -----------------------------------------------------------------------------------

    def forget(self, family: str) -> None:
        """Delete all rows of a family of partitions, for the sake of memory: nobody asks for it."""
        for partition in [each for each in self._sorts if each.startswith(f"{family}/")]:
            for sort in self._sorts.pop(partition):
                del self._rows[partition, sort]

    def _dynamodb_get_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        place = _place(request["Key"])
        row = self._rows.get(place)
        self._use("read", place[0], _units(row, 4096))
        return {"Item": dict(row)} if row else {}

    def _dynamodb_put_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        place, row = _place(request["Item"]), dict(request["Item"])
        old = self._rows.get(place)
        self._use("write", place[0], max(_units(old, 1024), _units(row, 1024)))
        self._refuse(request, old)
        if old is None:
            insort(self._sorts[place[0]], place[1])
        self._rows[place] = row
        return {}

    def _dynamodb_delete_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        place = _place(request["Key"])
        old = self._rows.get(place)
        self._use("write", place[0], _units(old, 1024))
        self._refuse(request, old)
        if old is None:
            return {}
        del self._rows[place]
        sorts = self._sorts[place[0]]
        del sorts[bisect_left(sorts, place[1])]
        return {"Attributes": old}

    def _dynamodb_query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: value["S"] for name, value in request["ExpressionAttributeValues"].items()}
        partition, first = values[":partition"], values.get(":first", "")
        last = values.get(":last")
        after = request.get("ExclusiveStartKey", {}).get("sort", {}).get("S")
        forward = request["ScanIndexForward"]
        sorts = self._sorts.get(partition, [])
        found = sorts[bisect_left(sorts, first) :]
        if last is not None:
            found = found[: bisect_left(found, last + "\0")]
        if not forward:
            found = found[::-1]
        if after is not None:
            found = [each for each in found if (each > after if forward else each < after)]
        page = found[: request["Limit"]]
        rows = [self._rows[partition, sort] for sort in page]
        self._use("read", partition, max(1, -(-sum(map(_size, rows)) // 4096)))
        more: dict[str, Any] = {}
        if len(page) < len(found):
            more["LastEvaluatedKey"] = {"partition": {"S": partition}, "sort": {"S": page[-1]}}
        return {"Items": rows, **more}

    def _refuse(self, request: Mapping[str, Any], row: Mapping[str, Any] | None) -> None:
        """Hold a write to its condition, which is one of the adapter's two."""
        condition = request.get("ConditionExpression")
        if condition is None:
            return
        values = request["ExpressionAttributeValues"]
        at = (row or {}).get("expires_at")
        expired = at is not None and int(at["N"]) <= int(values[":now"]["N"])
        if ":expect" in values:
            good = bool(row) and row["token"] == values[":expect"] and not expired  # type: ignore[index]
        else:
            good = row is None or expired
        if not good:
            raise _error("ConditionalCheckFailedException", Item=dict(row) if row else None)

    def _use(self, verb: str, partition: str, units: int) -> None:
        """Use units of a key, of the partition where it lies, and of the table."""
        if self.free:
            return
        second = int(self.clock.seconds)
        key, table = (KEY_WRITES, TABLE_WRITES) if verb == "write" else (KEY_READS, TABLE_READS)
        lies = hashlib.md5(partition.encode(), usedforsecurity=False).digest()[0] % 4
        limits = {
            (f"{verb} key", partition): key,
            (f"{verb} partition", str(lies)): key + self._credit(verb, str(lies), key, second),
            (f"{verb} table", ""): max(table, 2 * self._before(verb, second)),
        }
        exceeded = self.meters.take(limits, second, units)
        if exceeded:
            self.meters.refused[f"DynamoDB, {exceeded}"] += 1
            self.meters.refused_at[second // 60] += 1
            raise _error(_REFUSED["dynamodb"])
        self.meters.units[verb] += units

    def _credit(self, verb: str, lies: str, limit: int, second: int) -> float:
        """Return what a partition has left of earlier seconds."""
        at, credit = self._credits.get((verb, lies), (second, float(CREDIT * limit)))
        while at < second:
            credit += limit - self.meters.used[at][f"{verb} partition", lies]
            at, credit = at + 1, min(credit, CREDIT * limit)
        self._credits[verb, lies] = at, credit
        return credit

    def credit(self, verb: str, limit: int) -> float:
        """Return the share of its credit that the partition which has the least is left with."""
        left = [credit for (each, _), (_, credit) in self._credits.items() if each == verb]
        return min(left, default=0.0) / (CREDIT * limit)

    def _before(self, verb: str, second: int) -> int:
        """Return the highest use a second until half an hour ago."""
        at = second - _GROWS
        if at >= 0:
            used = self.meters.used[at][f"{verb} table", ""]
            self._peaks[verb] = max(self._peaks[verb], used)
        return self._peaks[verb]

    # SQS ----------------------------------------------------------------------------------------

    def _sqs_send_message_batch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        entries = request["Entries"]
        sizes = (len(each["MessageBody"]) + len(str(each["MessageAttributes"])) for each in entries)
        if not 0 < len(entries) <= BATCH or sum(sizes) > BATCH_BYTES:
            raise _error("BatchRequestTooLong")
        for entry in entries:
            number = next(self._numbers)
            at = self.clock.seconds + entry.get("DelaySeconds", 0)
            sent = Sent(str(number), entry, at, at)
            heapq.heappush(self.waiting[request["QueueUrl"]], (at, number, sent))
        return {"Successful": [{"Id": each["Id"]} for each in entries]}

    def take(self, url: str, at: float, batch: int = BATCH, hidden: float = 0.0) -> list[Sent]:
        """Receive a batch, as an event source mapping does, and hide it for so many seconds.

        Return no message beyond the limit of those in flight.
        """
        found: list[Sent] = []
        waiting, in_hand = self.waiting[url], self.in_hand[url]
        while waiting and waiting[0][0] <= at and len(found) < batch:
            if len(in_hand) >= IN_FLIGHT:
                self.meters.refused["SQS, in hand"] += 1
                break
            sent = heapq.heappop(waiting)[2]
            sent.tries += 1
            sent.visible_at = at + hidden
            in_hand[sent.number] = sent
            found.append(sent)
        self.most_in_hand[url] = max(self.most_in_hand[url], len(in_hand))
        return found

    def finish(self, url: str, number: str, *, failed: bool) -> None:
        """Delete a message that is done; one that failed shows again when its pause is over."""
        sent = self.in_hand[url].pop(number, None)
        if sent and failed:
            heapq.heappush(self.waiting[url], (sent.visible_at, int(number), sent))

    def _sqs_change_message_visibility(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._show(request["QueueUrl"], request)
        return {}

    def _sqs_change_message_visibility_batch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        for entry in request["Entries"]:
            self._show(request["QueueUrl"], entry)
        return {"Successful": [{"Id": each["Id"]} for each in request["Entries"]]}

    def _show(self, url: str, entry: Mapping[str, Any]) -> None:
        sent = self.in_hand[url].get(entry["ReceiptHandle"])
        if sent:
            sent.visible_at = self.clock.seconds + entry["VisibilityTimeout"]

    def _sqs_delete_message(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.in_hand[request["QueueUrl"]].pop(request["ReceiptHandle"], None)
        return {}

    def _sqs_send_message(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._sqs_send_message_batch({**request, "Entries": [{"Id": "0", **request}]})

    # Secrets and blobs --------------------------------------------------------------------------

    def _secretsmanager_get_secret_value(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._limit("secretsmanager", SECRETS)
        return {"SecretBinary": self._values["secret", request["SecretId"]]}

    def _secretsmanager_put_secret_value(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._values["secret", request["SecretId"]] = request["SecretBinary"]
        return {}

    def _s3_get_object(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._limit("s3", BLOBS_READ)
        if ("blob", request["Key"]) not in self._values:
            raise _error("NoSuchKey")
        return {"Body": BytesIO(self._values["blob", request["Key"]])}

    def _s3_put_object(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._limit("s3", BLOBS_WRITTEN)
        self._values["blob", request["Key"]] = request["Body"]
        return {}

    def _s3_delete_object(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._limit("s3", BLOBS_WRITTEN)
        self._values.pop(("blob", request["Key"]), None)
        return {}

    def _limit(self, service: str, limit: int) -> None:
        second = int(self.clock.seconds)
        if not self.free and self.meters.take({(service, ""): limit}, second, 1):
            self.meters.refused[service] += 1
            raise _error(_REFUSED[service])


class SimulatedServices(Services):
    """The services that the adapters know, over AWS in memory."""

    def __init__(self, aws: Aws) -> None:
        super().__init__(seconds=lambda: aws.clock.seconds, sleep=aws.clock.rest)
        self._aws = aws

    def client(self, service: str, region: str = "") -> Any:
        del region
        return _Client(self._aws, service)


class _Client:
    def __init__(self, aws: Aws, service: str) -> None:
        self._aws = aws
        self._service = service

    def __getattr__(self, operation: str) -> Any:
        return lambda **request: self._aws.ask(self._service, operation, request)


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["partition"]["S"], row["sort"]["S"]


def _size(row: Mapping[str, Any]) -> int:
    return sum(len(name) + len(str(*value.values())) for name, value in row.items())


def _units(row: Mapping[str, Any] | None, unit: int) -> int:
    return max(1, -(-_size(row) // unit)) if row else 1


def _error(code: str, **more: Any) -> ClientError:
    answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError({**answer, **more}, "Operation")  # type: ignore[arg-type]
