"""Google Cloud in memory, on a simulated clock, with the limits that its services publish.

It answers what the adapters ask, in the libraries' own types, and knows no more queries than
theirs. Where Google says how much a thing takes, and not what happens beyond, it is refused here.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from google.api_core import exceptions as sdk
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsResponse,
    CommitResponse,
    RunQueryResponse,
)

from bellhop.adapters.gcp.services import Services
from tests.fakes.aws import Meters, Sent, SimulatedClock

RAMP, GROWTH, EVERY = 500, 1.5, 300
"""Operations a second of a new collection, and how many times more after each five minutes."""

RANGE_WRITES = 500
"""Documents written a second where ids lie next to each other: one partition of ours."""

DOCUMENT_WRITES = 60
"""Writes a minute of one document, which takes one a second for long, and more for a moment."""

REQUEST, DOCUMENT = 10 * 1024 * 1024, 1024 * 1024
"""Bytes of a request, and of a document."""

PUBLISHED, PUSHED = 50_000_000, 20_000_000
"""Bytes a second of a small region, which are published, and pushed."""

MESSAGES, MESSAGES_BYTES = 1_000, 10_000_000
"""Of one request that publishes."""

ACCESSES = 1_500
"""Secrets read a second: 90,000 a minute."""

BLOBS_READ, BLOBS_WRITTEN = 5_000, 1_000
"""Requests a second that a bucket takes from the beginning on."""

LATENCY = {"firestore": 0.010, "publisher": 0.020, "subscriber": 0.020, "secretmanager": 0.030}
BLOB_LATENCY = 0.030
"""Seconds, assumed."""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_FOUND, _NO_CONTENT, _ABSENT = 200, 204, 404


class Google:
    """Documents, topics, secrets and blobs.

    `grown` are operations a second which the database had taken before: what grows from nothing
    takes three quarters of an hour to ten thousand.
    """

    def __init__(self, *, grown: float = RAMP) -> None:
        self.clock = SimulatedClock()
        self.meters = Meters()
        self.by_minute = Meters()
        self.free = False
        self._grown = grown
        self._documents: dict[str, Any] = {}
        self._sorts: dict[str, list[str]] = defaultdict(list)
        self._times = itertools.count(int(_BEGIN.timestamp()) * 1_000_000)
        self._numbers = itertools.count(1)
        self._versions: dict[str, list[bytes]] = {}
        self._blobs: dict[str, bytes] = {}
        self.waiting: dict[str, list[tuple[float, int, Sent]]] = defaultdict(list)
        self.in_hand: Counter[str] = Counter()
        self.most_in_hand: Counter[str] = Counter()

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Measure and limit nothing for a while."""
        self.free = True
        try:
            yield
        finally:
            self.free = False

    def ask(self, service: str, operation: str, request: Any) -> Any:
        """Answer one request, after the time that it takes."""
        if not self.free:
            self.clock.rest(LATENCY[service])
            self.meters.asked[f"{service}:{operation}"] += 1
        return getattr(self, f"_{service}_{operation}")(request)

    def _use(self, limits: Mapping[tuple[str, str], float], units: int = 1) -> str:
        """Use units of limits in this second; name the one that is exceeded."""
        if self.free:
            return ""
        exceeded = self.meters.take(limits, int(self.clock.seconds), units)
        if exceeded:
            self._refuse(exceeded)
        return exceeded

    def _refuse(self, what: str) -> None:
        self.meters.refused[what] += 1
        self.meters.refused_at[int(self.clock.seconds) // 60] += 1

    # Firestore ----------------------------------------------------------------------------------

    @property
    def ramp(self) -> float:
        """Say how many operations a second the database takes by now."""
        return self._grown * GROWTH ** (max(self.clock.seconds, 0) // EVERY)

    def _operate(self, **more: float) -> None:
        limits = {("Firestore, operations", ""): self.ramp}
        limits |= {("Firestore, writes key", name): limit for name, limit in more.items()}
        if self._use(limits):
            raise sdk.ResourceExhausted("")  # type: ignore[no-untyped-call]

    def _firestore_commit(self, request: Any) -> Any:
        raw = type(request).pb(request)
        [write] = raw.writes
        name = write.delete or write.update.name
        found = self._documents.get(name)
        if raw.ByteSize() > REQUEST or write.update.ByteSize() > DOCUMENT:
            raise sdk.InvalidArgument("too large")  # type: ignore[no-untyped-call]
        if write.delete and found is None:
            self._operate()
        else:
            fields = (found if write.delete else write.update).fields
            self._operate(**{fields["partition"].string_value: RANGE_WRITES})
        self._hold(write.current_document, found)
        self._wear(name)
        stamp = _timestamp(next(self._times))
        if write.delete:
            self._remove(name)
        else:
            self._keep(name, write.update, stamp)
        if not self.free:
            self.meters.units["deleted" if write.delete else "written"] += 1
        result = CommitResponse.pb()(write_results=[{"update_time": stamp}])
        return CommitResponse.wrap(result)

    def _hold(self, condition: Any, found: Any) -> None:
        """Hold a write to its condition."""
        match condition.WhichOneof("condition_type"):
            case "exists":
                if condition.exists and found is None:
                    raise sdk.NotFound("")  # type: ignore[no-untyped-call]
                if not condition.exists and found is not None:
                    raise sdk.AlreadyExists("")  # type: ignore[no-untyped-call]
            case "update_time":
                if found is None or found.update_time != condition.update_time:
                    raise sdk.FailedPrecondition("")  # type: ignore[no-untyped-call]

    def _wear(self, name: str) -> None:
        """Write one document: more than it takes for long is contention."""
        minute = int(self.clock.seconds // 60)
        limits = {("Firestore, a document", name): float(DOCUMENT_WRITES)}
        if not self.free and self.by_minute.take(limits, minute, 1):
            self._refuse("Firestore, a document")
            raise sdk.Aborted("")  # type: ignore[no-untyped-call]

    def key_of(self, name: str) -> str:
        """Return the partition and the sort key of a document."""
        found = self._documents.get(name)
        if found is None:
            return "one that is gone"
        return " ".join(found.fields[each].string_value for each in ("partition", "sort"))

    def _keep(self, name: str, document: Any, stamp: Mapping[str, int]) -> None:
        place, _, sort = name.rpartition("/")
        kept = type(document)()
        kept.CopyFrom(document)
        kept.update_time.seconds, kept.update_time.nanos = stamp["seconds"], stamp["nanos"]
        if name not in self._documents:
            insort(self._sorts[_range(place, sort)], sort)
        self._documents[name] = kept

    def _remove(self, name: str) -> None:
        if self._documents.pop(name, None) is not None:
            place, _, sort = name.rpartition("/")
            sorts = self._sorts[_range(place, sort)]
            del sorts[bisect_left(sorts, sort)]

    def _firestore_batch_get_documents(self, request: Any) -> Any:
        [name] = type(request).pb(request).documents
        self._operate()
        if not self.free:
            self.meters.units["read"] += 1
        found = self._documents.get(name)
        answer = {"missing": name} if found is None else {"found": found}
        return [BatchGetDocumentsResponse.wrap(BatchGetDocumentsResponse.pb()(**answer))]

    def _firestore_run_query(self, request: Any) -> Any:
        raw = type(request).pb(request)
        query = raw.structured_query
        self._operate()
        place = f"{raw.parent}/{query.from_[0].collection_id}"
        backwards = query.order_by[0].field.field_path == "place"
        first, last = (_cursor(each) for each in (query.start_at, query.end_at))
        sorts = self._sorts.get(_range(place, first[0]), [])
        if backwards:
            first, last = (last[0], not last[1]), (first[0], not first[1])
        begin = (bisect_left if first[1] else bisect_right)(sorts, first[0])
        end = (bisect_left if last[1] else bisect_right)(sorts, last[0])
        names = sorts[begin:end][:: -1 if backwards else 1][: query.limit.value]
        if not self.free:
            self.meters.units["read"] += max(1, len(names))
        answer = RunQueryResponse.pb()
        return _Stream(
            RunQueryResponse.wrap(answer(document=self._documents[f"{place}/{each}"]))
            for each in names
        )

    # Pub/Sub ------------------------------------------------------------------------------------

    def _publisher_publish(self, request: Mapping[str, Any]) -> Any:
        messages = request["messages"]
        size = sum(map(size_of, messages))
        if not 0 < len(messages) <= MESSAGES or size > MESSAGES_BYTES:
            raise sdk.InvalidArgument("too many")  # type: ignore[no-untyped-call]
        if self._use({("Pub/Sub, published bytes", ""): PUBLISHED}, size):
            raise sdk.ResourceExhausted("")  # type: ignore[no-untyped-call]
        at = self.clock.seconds
        for message in messages:
            number = next(self._numbers)
            sent = Sent(str(number), message, at, at)
            heapq.heappush(self.waiting[request["topic"]], (at, number, sent))
        return SimpleNamespace()

    def take(self, topic: str, at: float) -> Sent | None:
        """Take the next message that is to be pushed, if Pub/Sub may push it now."""
        waiting = self.waiting[topic]
        if not waiting or waiting[0][0] > at:
            return None
        if self._use({("Pub/Sub, pushed bytes", ""): PUSHED}, size_of(waiting[0][2].entry)):
            return None
        sent = heapq.heappop(waiting)[2]
        sent.tries += 1
        self.in_hand[topic] += 1
        self.most_in_hand[topic] = max(self.most_in_hand[topic], self.in_hand[topic])
        return sent

    def finish(self, topic: str, sent: Sent, *, again_at: float | None) -> None:
        """End a push; one that was refused is pushed again after a pause."""
        self.in_hand[topic] -= 1
        if again_at is not None:
            heapq.heappush(self.waiting[topic], (again_at, int(sent.number), sent))

    def _subscriber_pull(self, request: Any) -> Any:
        # What nobody answers for is not played: the topics of dead letters are empty.
        del request
        return SimpleNamespace(received_messages=())

    # Secrets and blobs --------------------------------------------------------------------------

    def _secretmanager_create_secret(self, request: Mapping[str, Any]) -> Any:
        self._versions.setdefault(f"{request['parent']}/secrets/{request['secret_id']}", [])

    def _secretmanager_add_secret_version(self, request: Mapping[str, Any]) -> Any:
        versions = self._versions[request["parent"]]
        versions.append(request["payload"]["data"])
        return SimpleNamespace(name=f"{request['parent']}/versions/{len(versions)}")

    def _secretmanager_access_secret_version(self, request: Mapping[str, Any]) -> Any:
        if self._use({("Secret Manager, accesses", ""): ACCESSES}):
            raise sdk.ResourceExhausted("")  # type: ignore[no-untyped-call]
        place, _, version = request["name"].rpartition("/versions/")
        data = self._versions[place][int(version) - 1]
        return SimpleNamespace(payload=SimpleNamespace(data=data))

    def blob(self, method: str, url: str, data: bytes | None) -> Any:
        """Answer one request of Cloud Storage's JSON API."""
        if not self.free:
            self.clock.rest(BLOB_LATENCY)
            self.meters.asked[f"storage:{method}"] += 1
        kind, limit = ("reads", BLOBS_READ) if method == "GET" else ("writes", BLOBS_WRITTEN)
        if self._use({(f"Cloud Storage, {kind}", ""): limit}):
            return SimpleNamespace(status_code=429, content=b"")
        parts = urlsplit(url)
        name = unquote(parts.path.rpartition("/")[2])
        match method:
            case "POST":
                self._blobs[parse_qs(parts.query)["name"][0]] = data or b""
            case "DELETE":
                self._blobs.pop(name, None)
                return SimpleNamespace(status_code=_NO_CONTENT, content=b"")
            case _ if "maxResults" not in parts.query and name not in self._blobs:
                return SimpleNamespace(status_code=_ABSENT, content=b"")
        return SimpleNamespace(status_code=_FOUND, content=self._blobs.get(name, b""))


class SimulatedGoogle(Services):
    """The services that the adapters know, over Google in memory."""

    def __init__(self, google: Google) -> None:
        seconds = {"seconds": lambda: google.clock.seconds, "sleep": google.clock.rest}
        super().__init__("fleet", emulators={}, **seconds)
        self._google = google

    def client(self, service: str) -> Any:
        return _Client(self._google, service)


class _Client:
    def __init__(self, google: Google, service: str) -> None:
        self._google = google
        self._service = service

    def request(self, method: str, url: str, *, data: bytes | None, **_: Any) -> Any:
        return self._google.blob(method, url, data)

    def __getattr__(self, operation: str) -> Any:
        return lambda request, **_: self._google.ask(self._service, operation, request)


class _Stream(list[Any]):
    """The answers to a query."""

    def cancel(self) -> None:
        """Stop reading them."""


def size_of(message: Mapping[str, Any]) -> int:
    """Count a message's bytes as Pub/Sub does, more or less."""
    texts: Sequence[str] = (*message["attributes"], *message["attributes"].values())
    return len(message["data"]) + sum(map(len, texts)) + 40


def _range(place: str, sort: str) -> str:
    """Return where the documents of one query lie: those of one partition of ours."""
    return f"{place}/{sort.partition(':')[0].partition(';')[0]}"


def _cursor(cursor: Any) -> tuple[str, bool]:
    """Return a bound's id, and whether the bound is before it."""
    value = cursor.values[0]
    return (value.string_value or value.reference_value).rpartition("/")[2], cursor.before


def _timestamp(microseconds: int) -> dict[str, int]:
    seconds, rest = divmod(microseconds, 1_000_000)
    return {"seconds": seconds, "nanos": rest * 1000}
