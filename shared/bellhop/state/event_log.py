"""Event log: the steps of each event, kept by cluster and hour for some days.

  note ─► buffer ─► flush: one item for each cluster and second ─► ledger/CLUSTER/HOUR
                                                            how many bytes: ledgers/HOUR/0 … 3

It only reports: a process that is killed loses its buffer, and a store that refuses a line does
not get it, without an error. The lines that all processes wrote in a second lie next to each
other, so that a reader sorts a second at a time, forwards and backwards. An item for each process
and hour counts the bytes that it wrote, beside the clusters' names:
`trim` deletes the oldest lines by these counts, and reads no line that it does not delete. In a
cloud many processes begin to count at each hour, for every cluster: four partitions take that.

The lines of a second are compressed, since those of an event repeat each other. A line is
`[MICROSECONDS, trace, what, object, detail, took, context]`; a field that is missing at its end has
the default of `Entry`.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.errors import BellhopError, InvalidError, TooLargeError
from bellhop.ports.store import Item, Store
from bellhop.state.sealer import as_bytes, as_text

_LACKING: tuple[Any, ...] = ("", 0.0, {})
_LEVEL = 1
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=dict).encode


class Entry(Struct, frozen=True):
    """One line of the event log: what happened to one object's event, and how long it took."""

    at: datetime
    trace: str
    what: str
    cluster: str
    object: str
    detail: str = ""
    took_ms: float = 0.0
    context: Mapping[str, Any] = {}


def write_lines(entries: Sequence[Entry]) -> dict[str, Any]:
    """Write lines of one second of a cluster as an item's value.

    Raises:
        InvalidError: one cannot be written as JSON.
    """
    try:
        text = _encode([_line(entry) for entry in entries])
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError("cannot write lines of the event log: they are not JSON") from error
    return {"lines": as_text(zlib.compress(text.encode(), _LEVEL))}


def read_lines(value: Mapping[str, Any], second: datetime, cluster: str) -> Iterator[Entry]:
    """Read what `write_lines` wrote of a second of a cluster."""
    for microseconds, trace, what, key, *rest in json.loads(
        zlib.decompress(as_bytes(value["lines"]))
    ):
        at = second + timedelta(microseconds=microseconds)
        yield Entry(at, trace, what, cluster, key, *rest[: len(_LACKING)])


def _line(entry: Entry) -> list[Any]:
    rest = [entry.detail, entry.took_ms, entry.context]
    while rest and rest[-1] == _LACKING[len(rest) - 1]:
        rest.pop()
    return [entry.at.microsecond, entry.trace, entry.what, entry.object, *rest]


_NOBODYS = "-"
"""The place of lines about no cluster."""

_MOST_KNOWN = 10_000
_MOST_AT_HAND = 20_000
"""Lines; those that come while as many wait are lost."""

_UNCOUNTED = 4 * 1024
"""Bytes, beside a tenth, that may be written to an hour of a cluster before its count is."""

_SHARES = 4

_AROUND = 200
"""Bytes that an item takes in a store beside its lines, more or less."""

_MOST_CUT = 10_000
"""Items that are deleted at a time."""

_HOUR = timedelta(hours=1)
_OPEN = 2 * _HOUR
"""How old an hour is to which a process may still add."""

_COUNTED = "counted"
"""The place, beside the hours' sums, of how far they have been counted."""


class Bounds(Struct, frozen=True):
    """How long lines are kept, and how many bytes of them: the oldest go first."""

    age: timedelta = timedelta(days=7)
    size: int = 512 * 1024 * 1024


class EventLog:
    """Lines by cluster and time; used by many threads at once."""

    def __init__(self, store: Store, bounds: Bounds | None = None) -> None:
        self._store = store
        self._bounds = bounds or Bounds()
        self._me = os.urandom(4).hex()
        self._lock = threading.Lock()
        self._buffer: list[Entry] = []
        self._counts: dict[tuple[str, str], _Count] = {}
        self._gathered: threading.Event | None = None
        self._observe: Callable[[Entry], None] = lambda _: None

    def observe(self, observer: Callable[[Entry], None]) -> None:
        """Call `observer` with each line from now on, before it is written."""
        self._observe = observer

    def gather(self) -> threading.Event:
        """Keep lines in memory from now on until `flush`; return what is set when there are some.

        Else each is written at once. A function flushes when its messages are done.
        """
        self._gathered = threading.Event()
        return self._gathered

    # Writing ------------------------------------------------------------------------------------

    def note(self, entry: Entry) -> None:
        """Add a line; noting the same one twice is noting it once."""
        self._observe(entry)
        with self._lock:
            if len(self._buffer) < _MOST_AT_HAND:
                self._buffer.append(entry)
        if self._gathered is None:
            self.flush()
        else:
            self._gathered.set()

    def flush(self) -> int:
        """Write the lines in memory; return how many were lost, since the store took none."""
        with self._lock:
            entries, self._buffer = self._buffer, []
        seconds: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        for entry in entries:
            seconds[entry.cluster or _NOBODYS, _second(entry.at)].append(entry)
        return sum(self._write(*place, lines) for place, lines in seconds.items())

    def _write(self, cluster: str, second: str, entries: list[Entry]) -> int:
        hour, rest = second[:13], second[14:]
        expires = datetime.fromisoformat(second).replace(tzinfo=UTC) + self._bounds.age
        sort = f"{rest}/{os.urandom(4).hex()}"
        try:
            value = write_lines(entries)
            self._store.put(Item(f"ledger/{cluster}/{hour}", sort, value, expires_at=expires))
            self._count(cluster, hour, _size(value), expires + _HOUR)
        except TooLargeError:
            if len(entries) > 1:
                half = len(entries) // 2
                first = self._write(cluster, second, entries[:half])
                return first + self._write(cluster, second, entries[half:])
            if not entries[0].context:
                return 1
            return self._write(cluster, second, [replace(entries[0], context={})])
        except BellhopError:
            return len(entries)
        return 0

    def _count(self, cluster: str, hour: str, size: int, expires: datetime) -> None:
        """Note how much this process wrote, now and then, and at first, so that it is found."""
        with self._lock:
            if len(self._counts) >= _MOST_KNOWN:
                self._counts, self._me = {}, os.urandom(4).hex()
            count = self._counts.setdefault((cluster, hour), _Count())
            count.written += size
            if count.stored and count.written < count.stored * 1.1 + _UNCOUNTED:
                return
            written, place = count.written, (_share(cluster, hour), f"{cluster}/{self._me}")
        self._store.put(Item(*place, {"bytes": written}, expires_at=expires))
        count.stored = written

    # Reading ------------------------------------------------------------------------------------

    def clusters(self, hour: str) -> list[str]:
        """Name the clusters that have lines in an hour (YYYY-MM-DDTHH), for `of`."""
        return sorted(self._written(hour))

    def of(
        self, cluster: str, hour: str, after: str = "", *, backwards: bool = False
    ) -> Iterator[tuple[str, Entry]]:
        """Yield a cluster's lines of an hour by time, each with the mark to go on `after`.

        Marks of different clusters differ, and sort by time too.
        """
        cluster = cluster or _NOBODYS
        # All of the second in which the mark lies: another may have been noted since.
        begin = after[14:19] if after[:13] == hour else ""
        items = self._store.query(f"ledger/{cluster}/{hour}", after=begin, backwards=backwards)
        for second, group in groupby(items, key=lambda item: item.sort[:5]):
            begun = datetime.fromisoformat(f"{hour}:{second}").replace(tzinfo=UTC)
            found = {
                _mark(entry): entry
                for item in group
                for entry in read_lines(item.value, begun, "" if cluster == _NOBODYS else cluster)
            }
            for mark in sorted(found, reverse=backwards):
                if mark > after:
                    yield mark, found[mark]

    def _written(self, hour: str) -> dict[str, int]:
        """Count the bytes of each cluster in an hour."""
        found: dict[str, int] = defaultdict(int)
        for item in self._counted(hour):
            found[item.sort.rpartition("/")[0]] += item.value["bytes"]
        return found

    def _counted(self, hour: str) -> Iterator[Item]:
        for share in range(_SHARES):
            yield from self._store.query(f"ledgers/{hour}/{share}")

    # Trimming -----------------------------------------------------------------------------------

    def trim(self, now: datetime) -> int:
        """Delete the oldest lines beyond the bound; return how many bytes.

        Of very much only a part: the next time goes on. Two processes at once delete the same.
        """
        hours = self._hours(now)
        excess, left, freed = sum(hours.values()) - self._bounds.size, _MOST_CUT, 0
        for hour, size in hours.items():
            if freed >= excess or left <= 0:
                break
            if size > 0:
                count, cut = self._cut(hour, min(1.0, (excess - freed) / size), left, now)
                left, freed = left - count, freed + cut
        return freed

    def _hours(self, now: datetime) -> dict[str, int]:
        """Count the bytes of each hour, oldest first; one that is over is counted once.

        A process that dies before it has counted all leaves the rest to the next one.
        """
        sums = {item.sort: item.value for item in self._store.query("ledgers")}
        since, begun = self._uncounted(sums.pop(_COUNTED, {}), now), _hour(now - _OPEN)
        found = {}
        for hour in hours_between(now - self._bounds.age - _HOUR, now):
            totals = sums.get(hour, {"bytes": 0, "cut": 0})
            if hour >= min(since, begun):
                totals = {**totals, "bytes": sum(self._written(hour).values())}
                if totals["bytes"]:
                    self._total(hour, totals)
            found[hour] = totals["bytes"] - totals["cut"]
        if since != begun:
            self._count_from(begun, now)
        return found

    def _uncounted(self, counted: Mapping[str, Any], now: datetime) -> str:
        """Name the hour from which on all are to be counted; one before, without a sum, is empty.

        It is the first of all where lines were kept for another time, or the clock was ahead.
        """
        good = counted.get("age") == self._bounds.age.total_seconds()
        return counted["hour"] if good and counted["hour"] <= _hour(now) else ""

    def _count_from(self, hour: str, now: datetime) -> None:
        value = {"hour": hour, "age": self._bounds.age.total_seconds()}
        expires = now + self._bounds.age + _OPEN
        self._store.put(Item("ledgers", _COUNTED, value, expires_at=expires))

    def _total(self, hour: str, totals: Mapping[str, int]) -> None:
        expires = _begin(hour) + self._bounds.age + _OPEN
        self._store.put(Item("ledgers", hour, totals, expires_at=expires))

    def _cut(self, hour: str, share: float, most: int, now: datetime) -> tuple[int, int]:
        """Delete an hour's oldest lines of each cluster, by its share; count items and bytes."""
        written = self._written(hour)
        count = freed = 0
        for cluster, size in written.items():
            excess = size * share
            for item in self._store.query(f"ledger/{cluster}/{hour}"):
                if (excess <= 0 and share < 1) or count >= most:
                    break
                self._store.delete(item.partition, item.sort)
                taken = _size(item.value)
                excess, freed, count = excess - taken, freed + taken, count + 1
        if share >= 1 and count < most and hour < _hour(now - _OPEN):
            for each in self._counted(hour):
                self._store.delete(each.partition, each.sort)
            self._store.delete("ledgers", hour)
        else:
            totals = self._store.get("ledgers", hour)
            cut = freed + (totals.value["cut"] if totals else 0)
            self._total(hour, {"bytes": sum(written.values()), "cut": cut})
        return count, freed


@dataclass
class _Count:
    """Bytes that a process wrote to an hour of a cluster, and how many of them it has stored."""

    written: int = 0
    stored: int = 0


def hours_between(since: datetime, until: datetime) -> list[str]:
    """Name the hours that a span touches, in order."""
    count = int((until - _begin(_hour(since))) / _HOUR)
    return [_hour(since + _HOUR * each) for each in range(count + 1)]


def _share(cluster: str, hour: str) -> str:
    number = hashlib.sha256(cluster.encode()).digest()[0] % _SHARES
    return f"ledgers/{hour}/{number}"


def _size(value: Mapping[str, Any]) -> int:
    return _AROUND + len(value["lines"])


def _second(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19]


def _hour(at: datetime) -> str:
    return _second(at)[:13]


def _begin(hour: str) -> datetime:
    return datetime.fromisoformat(f"{hour}:00").replace(tzinfo=UTC)


def _mark(entry: Entry) -> str:
    distinct = hashlib.sha256(repr(entry).encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{entry.at.isoformat(timespec='microseconds')}/{distinct}"
