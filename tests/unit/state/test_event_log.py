"""The ledger: lines in batches, in the order of time, within bounds, and in nobody's way."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.errors import UnreachableError
from bellhop.ports.store import Item
from bellhop.state.event_log import Bounds, Entry, EventLog, hours_between
from tests.fakes.clock import START
from tests.fakes.fleet import CountingStore
from tests.unit.state.rig import EAST, WEB, Rig

HOUR = "2026-01-01T12"
SECOND = timedelta(seconds=1)


@pytest.fixture
def ledger(rig: Rig) -> EventLog:
    return rig.records.ledger


def line(ago: float = 0.0, trace: str = "t", cluster: str = EAST, **more: Any) -> Entry:
    """Return a line of some seconds before the hour's middle."""
    at = START + timedelta(minutes=30) - timedelta(seconds=ago)
    return Entry(at, trace, more.pop("what", "rang"), cluster, str(WEB), **more)


def lines(ledger: EventLog, *, cluster: str = EAST, hour: str = HOUR, **how: Any) -> list[Entry]:
    return [entry for _, entry in ledger.of(cluster, hour, **how)]


def test_keeps_lines_by_cluster_and_hour_for_a_while(rig: Rig, ledger: EventLog) -> None:
    """Equal times and equal lines make no line disappear but a true repeat."""
    first = line(1, "t1", detail="x", took_ms=1.5, context={"since_ring_ms": 3})
    second = line(1, "t2")
    later = line(0, "t1", what="matched", context={"triggers": ["a", "b"]})
    nobodys = line(0, "", cluster="")
    for entry in (later, first, second, first, nobodys):
        ledger.note(entry)

    found = list(ledger.of(EAST, HOUR))
    assert [entry for _, entry in found][-1] == later
    assert {entry.trace: entry for _, entry in found[:-1]} == {"t1": first, "t2": second}
    assert len(found) == 3
    assert lines(ledger, after=found[1][0]) == [later]
    assert lines(ledger, cluster="") == [nobodys]
    assert ledger.clusters(HOUR) == ["-", EAST]
    assert lines(ledger, hour="2026-01-01T13") == ledger.clusters("2026-01-01T13") == []
    rig.clock.advance(timedelta(days=7, hours=2))
    assert lines(ledger) == ledger.clusters(HOUR) == []


def test_lines_are_sorted_by_time_in_whatever_batches_they_were_written(rig: Rig) -> None:
    """Forwards and backwards, and from every mark on."""
    draw = Random(7)
    told = [line(draw.choice([0, 0.25, 0.5, 1, 1.5, 2, 70]), str(number)) for number in range(60)]
    writers = [EventLog(rig.store) for _ in range(3)]
    for writer in writers:
        writer.gather()
    for entry in told:
        writer = draw.choice(writers)
        writer.note(entry)
        if draw.random() < 0.2:
            writer.flush()
    for writer in writers:
        assert writer.flush() == 0

    found = list(rig.records.ledger.of(EAST, HOUR))
    assert sorted(told, key=lambda each: each.at) == sorted(
        (entry for _, entry in found), key=lambda each: (each.at, told.index(each))
    )
    assert [mark for mark, _ in found] == sorted(mark for mark, _ in found)
    assert list(rig.records.ledger.of(EAST, HOUR, backwards=True)) == found[::-1]
    for place, (mark, _) in enumerate(found):
        rest = found[place + 1 :]
        assert list(rig.records.ledger.of(EAST, HOUR, after=mark)) == rest
        assert list(rig.records.ledger.of(EAST, HOUR, mark, backwards=True)) == rest[::-1]


def test_a_step_of_a_cluster_is_one_write(rig: Rig) -> None:
    """Lines that gather are written together: an item a second and cluster."""
    store = CountingStore(rig.store)
    ledger = EventLog(store)
    ledger.gather()
    for number in range(100):
        ledger.note(line(1, str(number)))
    assert store.counts == {}
    ledger.flush()

    assert store.counts["put"] == 1
    ledger.note(line(1, "more"))
    ledger.flush()
    assert store.counts["put"] == 2
    assert len(lines(ledger)) == 101


def test_says_when_there_is_something_to_write(ledger: EventLog) -> None:
    """Whoever flushes sleeps until then."""
    gathered = ledger.gather()
    assert not gathered.is_set()
    ledger.note(line())

    assert gathered.is_set()
    assert lines(ledger) == []


def test_lines_of_one_event_take_little_more_than_one(rig: Rig, ledger: EventLog) -> None:
    """What repeats itself is written once."""
    trace = "3f9a1c20deadbeef3f9a1c20deadbeef"
    event = [
        line(1, trace),
        line(1, trace, what="matched", took_ms=0.3, context={"source": "services"}),
        line(1, trace, what="rendered", took_ms=17.0, detail="NetworkPolicy front"),
        line(1, trace, what="applied", took_ms=7.9, detail="NetworkPolicy front"),
    ]
    sizes = []
    for cluster, entries in (("a/one", event[:1]), ("a/all", event)):
        ledger.gather()
        for entry in entries:
            ledger.note(replace(entry, cluster=cluster))
        ledger.flush()
        (item,) = rig.store.query(f"ledger/{cluster}/{HOUR}")
        sizes.append(len(json.dumps(item.value)))

    assert sizes[1] < 3 * sizes[0]
    found = {entry.what: entry for entry in lines(ledger, cluster="a/all")}
    assert found == {each.what: replace(each, cluster="a/all") for each in event}


def noise(size: int) -> str:
    """Return a text that nobody can make smaller."""
    return Random(size).randbytes(size).hex()


def test_a_line_that_says_too_much_is_kept_without_its_context(ledger: EventLog) -> None:
    """An error in its log does not stop an event; those beside it are whole."""
    many = line(1, "many", context={"text": noise(500_000)})
    large = [line(1, str(number), context={"text": noise(100_000)}) for number in range(5)]
    ledger.gather()
    for each in (*large, many):
        ledger.note(each)

    assert ledger.flush() == 0
    found = {entry.trace: entry for entry in lines(ledger)}
    assert found == {each.trace: each for each in (*large, replace(many, context={}))}


def test_a_line_that_is_no_json_stops_nobody(ledger: EventLog) -> None:
    """It is lost, with what was noted in the same second."""
    ledger.gather()
    ledger.note(line(1, context={"what": object()}))
    ledger.note(line(0))

    assert ledger.flush() == 1
    assert len(lines(ledger)) == 1


class Refusing:
    """A store that takes nothing."""

    def put(self, _item: Item, **_: Any) -> Item:
        raise UnreachableError("The store does not answer.")


def test_a_store_that_takes_no_lines_fails_nobody() -> None:
    """They are lost, and how many is said; no more wait than fit."""
    ledger = EventLog(Refusing())  # type: ignore[arg-type]
    ledger.note(line())
    ledger.gather()
    for number in range(20_500):
        ledger.note(line(0, str(number)))

    assert ledger.flush() == 20_000
    assert ledger.flush() == 0


def test_no_partition_takes_the_counts_of_a_whole_fleet(rig: Rig) -> None:
    """Each process counts for each cluster at each hour: four partitions take that together."""
    written: Counter[str] = Counter()

    class Watched(CountingStore):
        def put(self, item: Item, **options: Any) -> Item:
            written[item.partition] += item.partition.startswith("ledgers/")
            return super().put(item, **options)

    ledger = EventLog(Watched(rig.store))
    names = [f"fleet/c{number}" for number in range(100)]
    for name in names:
        ledger.note(line(0, "t", cluster=name))

    assert ledger.clusters(HOUR) == sorted(names)
    assert max(written.values()) < 40


def test_lines_whose_cluster_could_not_be_named_are_found_with_the_next(rig: Rig) -> None:
    """A store that goes away between the two writes hides nothing for long."""

    class Failing(CountingStore):
        def put(self, item: Item, **options: Any) -> Item:
            if item.partition.startswith("ledgers/") and not self.counts["failed"]:
                self.counts["failed"] += 1
                raise UnreachableError("The store does not answer.")
            return super().put(item, **options)

    ledger = EventLog(Failing(rig.store))
    ledger.note(line(1, "one"))
    assert ledger.clusters(HOUR) == []
    ledger.note(line(0, "two"))

    assert ledger.clusters(HOUR) == [EAST]
    assert [entry.trace for entry in lines(ledger)] == ["one", "two"]


def test_threads_lose_no_line_to_each_other(ledger: EventLog) -> None:
    """Notes and flushes at once: every line is written, once."""
    ledger.gather()

    def tell(number: int) -> None:
        for turn in range(50):
            ledger.note(line(turn / 100, f"{number}/{turn}"))
            if turn % 7 == 0:
                ledger.flush()

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.flush()

    assert len({entry.trace for entry in lines(ledger)}) == len(lines(ledger)) == 300


# Bounds -----------------------------------------------------------------------------------------


def fill(store: Any, hours: int, *clusters: str, size: int = 20_000) -> int:
    """Write ten lines to each of some hours of some clusters; return the bytes."""
    ledger, begin = EventLog(store), START.replace(minute=0)
    for number in range(hours):
        for cluster in clusters:
            for minute in range(10):
                at = begin + timedelta(hours=number, minutes=minute)
                context = {"text": noise(size)}
                ledger.note(Entry(at, "t", "rang", cluster, str(WEB), context=context))
    return held(store, hours, *clusters)


def held(store: Any, hours: int, *clusters: str) -> int:
    return sum(
        len(item.value["lines"]) + 200
        for hour in hours_of(hours)
        for cluster in clusters
        for item in store.query(f"ledger/{cluster}/{hour}")
    )


def hours_of(count: int) -> list[str]:
    return hours_between(START, START + timedelta(hours=count - 1))


def trimmed(store: Any, size: int, hours: int) -> int:
    now = START + timedelta(hours=hours)
    return EventLog(store, Bounds(size=size)).trim(now)


def test_the_oldest_lines_go_where_there_are_too_many(rig: Rig) -> None:
    """Hours from the oldest on, and of the last of them the oldest part, in each cluster."""
    before = fill(rig.store, 6, "a/a", "b/b")
    freed = trimmed(rig.store, before * 7 // 12, 6)

    after = held(rig.store, 6, "a/a", "b/b")
    assert before - after == freed
    # Up to a tenth of what was written, or a line, is not counted yet.
    assert before * 6 // 12 < after <= before * 7 // 12 * 1.2
    ledger = EventLog(rig.store)
    left = {hour: len(lines(ledger, cluster="a/a", hour=hour)) for hour in hours_of(6)}
    assert [*left.values()] == [0, 0, left[hours_of(6)[2]], 10, 10, 10]
    assert [each.at.minute for each in lines(ledger, cluster="b/b", hour=hours_of(6)[2])] == [
        *range(10 - left[hours_of(6)[2]], 10)
    ]
    assert ledger.clusters(hours_of(6)[0]) == []
    assert trimmed(rig.store, before * 7 // 12, 6) <= before // 12


def test_lines_of_the_hour_that_is_still_written_can_be_too_many(rig: Rig) -> None:
    """Its oldest go, what comes after is found, and counts."""
    before = fill(rig.store, 1, "a/a")
    ledger = EventLog(rig.store, Bounds(size=before // 2))

    assert ledger.trim(START + timedelta(minutes=30)) >= before * 4 // 10
    ledger.note(Entry(START + timedelta(minutes=40), "new", "rang", "a/a", str(WEB)))
    assert lines(ledger, cluster="a/a")[-1].trace == "new"
    assert held(rig.store, 1, "a/a") <= before * 6 // 10 + 500
    assert ledger.trim(START + timedelta(minutes=50)) <= before // 10


def test_trimming_reads_no_line_that_it_does_not_delete(rig: Rig) -> None:
    """Hours that are over were counted before; only counts are read, one a cluster."""
    before = fill(rig.store, 5, "a/a", "b/b")
    trimmed(rig.store, before, 5)
    store = CountingStore(rig.store)

    assert trimmed(store, before, 5) == 0
    assert store.counts["get"] == store.counts["delete"] == 0
    assert store.counts["item"] <= 5 + 2 * 3


def test_hours_in_which_nothing_was_written_are_asked_for_once(rig: Rig) -> None:
    """Of a quiet week the last three hours are counted, and what became old since."""
    now = START + timedelta(days=30)
    fill(rig.store, 2, "a/a")
    store = CountingStore(rig.store)
    ledger = EventLog(store, Bounds(size=0))
    ledger.trim(now)
    assert store.counts["query"] > 4 * 168

    for hours, most in ((0, 3), (1, 4), (10, 13)):
        store.counts.clear()
        now += timedelta(hours=hours)
        assert ledger.trim(now) == 0
        assert store.counts["query"] <= 1 + 4 * most, hours


@pytest.mark.parametrize(
    ("hours", "age"),
    [
        pytest.param(10, timedelta(days=7), id="the clock was ahead"),
        pytest.param(20, timedelta(days=8), id="lines were kept for another time"),
    ],
)
def test_all_hours_are_counted_where_it_is_not_known_that_they_were(
    rig: Rig, hours: int, age: timedelta
) -> None:
    """Lines that nobody has counted would be kept beyond the bound."""
    trimmed(rig.store, 0, 20)
    fill(rig.store, 2, "a/a")
    assert trimmed(rig.store, 0, 20) == 0

    assert EventLog(rig.store, Bounds(age, 0)).trim(START + timedelta(hours=hours)) > 0


def test_a_death_while_counting_leaves_it_to_the_next(rig: Rig) -> None:
    """Nothing is said to be counted before all is."""
    before = fill(rig.store, 6, "a/a")

    class Dying(CountingStore):
        def query(self, partition: str, **options: Any) -> Iterator[Item]:
            if self.counts["query"] == 4 * 165:
                raise UnreachableError("The store does not answer.")
            return super().query(partition, **options)

    with pytest.raises(UnreachableError):
        trimmed(Dying(rig.store), before, 6)

    assert trimmed(rig.store, 0, 6) >= before * 9 // 10


def test_a_death_while_trimming_is_followed_by_the_next(rig: Rig) -> None:
    """What was deleted and not counted is counted as there, until its hour is deleted whole."""
    before = fill(rig.store, 4, "a/a")

    class Dying(CountingStore):
        def delete(self, *args: Any, **more: Any) -> bool:
            super().delete(*args, **more)
            if self.counts["delete"] == 4:
                raise UnreachableError("The store does not answer.")
            return True

    with pytest.raises(UnreachableError):
        trimmed(Dying(rig.store), before // 2, 4)
    trimmed(rig.store, before // 2, 4)

    assert before * 6 // 10 >= held(rig.store, 4, "a/a") >= before * 3 // 10


def test_lines_are_kept_as_long_as_they_are_to_be(rig: Rig) -> None:
    """A shorter age than a week is the store's to keep."""
    ledger = EventLog(rig.store, Bounds(age=timedelta(days=1)))
    ledger.note(line())
    rig.clock.advance(timedelta(hours=24, minutes=29))
    assert len(lines(ledger)) == 1
    rig.clock.advance(timedelta(minutes=2))
    assert lines(ledger) == []


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("2026-01-01T12:00:00", "2026-01-01T12:00:00", ["2026-01-01T12"]),
        (
            "2026-01-01T22:59:59",
            "2026-01-02T00:00:01",
            ["2026-01-01T22", "2026-01-01T23", "2026-01-02T00"],
        ),
        ("2026-01-01T13:00:00", "2026-01-01T12:00:00", []),
    ],
)
def test_names_the_hours_of_a_span(since: str, until: str, expected: list[str]) -> None:
    """Both ends included, in order."""
    ends = [datetime.fromisoformat(f"{each}+00:00") for each in (since, until)]

    assert hours_between(*ends) == expected
