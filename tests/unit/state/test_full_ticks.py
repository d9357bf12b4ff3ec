"""More timers than one tick can fire: in batches, many at once, retries first, none lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.errors import TemporaryError, ThrottledError
from bellhop.ports.store import Item
from bellhop.state.cluster import Cluster
from bellhop.state.delays import retry_timer, sweep_timer
from bellhop.state.envelope import Envelope
from bellhop.state.messages import CHARTS, Apply, Publisher, Resync
from bellhop.state.schedule import HOUSE, SPELL, Schedule
from bellhop.state.worker_pool import SEQUENTIAL, WorkerPool
from tests.fakes.fleet import Fleet

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
PATIENCE = 30.0
AT_ONCE = 16


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.schedule.tick()
    return fleet


class Watched(Publisher):
    """A publisher that notes what it publishes, after something else is done."""

    def __init__(self, fleet: Fleet, before: Callable[[list[Envelope]], object]) -> None:
        super().__init__(fleet.queues)
        self.batches: list[list[Envelope]] = []
        self._before = before

    def publish(self, messages: Iterable[Envelope]) -> None:
        batch = list(messages)
        if batch:
            self._before(batch)
            self.batches.append(batch)
        super().publish(batch)

    @property
    def done(self) -> list[str]:
        """Return what was published, in order."""
        return [each.do for batch in self.batches for each in batch]


def schedule(fleet: Fleet, publisher: Publisher, hands: WorkerPool = SEQUENTIAL) -> Schedule:
    return Schedule(fleet.records, publisher, fleet.settings, fleet.schedule._log, hands)


def set_resyncs(fleet: Fleet, count: int, late: timedelta = MINUTE) -> None:
    """Have the resyncs of so many clusters be due, one after the other within a minute."""
    first = fleet.clock.now() - late
    for number in range(count):
        cluster = Cluster("fleet", f"c{number}", {}, "v1", "", registered_at=first)
        fleet.records.clusters.put(cluster)
        body = Resync(cluster.key).message().body
        fleet.records.timers.set(sweep_timer(cluster.key), first + number * MINUTE / count, body)


def set_retries(fleet: Fleet, count: int) -> None:
    """Have so many retries be due just now."""
    for number in range(count):
        apply = Apply("", "", f"p{number}", "fleet/c0")
        body, name = apply.message().body, retry_timer("fleet/c0", apply.profile)
        fleet.records.timers.set(name, fleet.clock.now(), body)


def late(fleet: Fleet) -> list[str]:
    """Name the timers that are due."""
    due = fleet.records.timers.due(fleet.clock.now(), limit=10_000)
    return sorted(each.item.value["name"] for each in due if each.counts)


def ahead(fleet: Fleet) -> int:
    """Count the resyncs that a clock set which was ahead."""
    names = (each.key for each in fleet.records.clusters.all())
    timers = (fleet.records.timers.get(sweep_timer(name)) for name in names)
    return sum(each.value.is_ahead(fleet.clock.now()) for each in timers if each)


def test_a_thousand_timers_fire_in_batches_many_at_once(fleet: Fleet) -> None:
    """Ten messages a request, and sixteen batches in flight: 63 timers one after the other."""
    together = threading.Barrier(AT_ONCE)
    calls = iter(range(10_000))

    def before(_: list[Envelope]) -> None:
        # The first batch is one thread's, before others come.
        if 0 < next(calls) <= AT_ONCE:
            together.wait(PATIENCE)

    set_resyncs(fleet, 1_000)
    publisher, counts = Watched(fleet, before), fleet.store.counts
    counts.clear()
    ticked = schedule(fleet, publisher, WorkerPool(15, at_one=15)).tick()

    assert ticked.published == 1_000
    assert [len(each) for each in publisher.batches] == [10] * 100
    # Two threads that count at once may miss one.
    assert counts["get"] <= 2_001
    assert counts["put"] <= 2_000
    assert counts["delete"] <= 1_000
    assert counts["query"] <= 16 * 6
    assert late(fleet) == []


def test_a_tick_ends_in_time_and_the_next_one_goes_on_with_the_oldest(fleet: Fleet) -> None:
    """Retries come first, but never take more than half; whatever is left comes later, once."""
    set_resyncs(fleet, 300)
    set_retries(fleet, 100)
    publisher = Watched(fleet, lambda _: fleet.clock.advance(2 * SECOND))
    ticks = schedule(fleet, publisher)
    begun = fleet.clock.steady()
    first = ticks.tick()

    assert SPELL <= fleet.clock.steady() - begun < timedelta(seconds=30)
    assert publisher.done == ["apply"] * 60 + ["sweep"] * 60
    assert first.published == 120
    oldest = {f"fleet/c{number}" for number in range(60)}
    swept = [each for batch in publisher.batches for each in batch if isinstance(each, Resync)]
    assert {each.cluster for each in swept} == oldest
    for _ in range(3):
        ticks.tick()
    assert Counter(publisher.done) == {"apply": 100, "sweep": 300}
    assert late(fleet) == []


def test_one_message_that_is_refused_keeps_no_other_of_its_batch(fleet: Fleet) -> None:
    """The tick fails and says so; the timer is due until its message is out."""
    refusing = [True]

    def before(batch: list[Envelope]) -> None:
        if refusing[0] and any(getattr(each, "cluster", "") == "fleet/c3" for each in batch):
            # As SQS: the others of the request are out by now.
            Publisher(fleet.queues).publish(batch[:3])
            message = "cannot publish: SQS did not take 1 messages"
            raise ThrottledError(message)

    set_resyncs(fleet, 20)
    publisher = Watched(fleet, before)
    with pytest.raises(ThrottledError, match="did not take"):
        schedule(fleet, publisher).tick()

    assert late(fleet) == ["sweep/fleet/c3"]
    assert publisher.done.count("sweep") == 19
    refusing.clear()
    refusing.append(False)
    assert schedule(fleet, publisher).tick().published == 1
    assert late(fleet) == []


def test_a_timer_whose_record_cannot_be_read_keeps_no_other(fleet: Fleet) -> None:
    """It is another version's: it stays, and the tick fails each time, after all others fired."""
    set_resyncs(fleet, 30)
    timer = fleet.records.timers.get(sweep_timer("fleet/c0"))
    assert timer
    [place] = [
        item
        for shard in "0123456789abcdef"
        for item in fleet.store.query(f"timer/{shard}")
        if item.sort == sweep_timer("fleet/c0")
    ]
    fleet.store.put(Item(place.partition, place.sort, {"of": "another version"}))
    for _ in range(2):
        with pytest.raises(TemporaryError, match="another version"):
            fleet.schedule.tick()

    assert len(list(fleet.queues["sweep"].receive(1000, wait=timedelta(0)))) == 1 + 29


def test_a_retry_for_a_missing_inbox_goes_to_present_workers(fleet: Fleet) -> None:
    """Charts were switched off meanwhile: no later tick fails on it, and the others say why."""
    apply = Apply("", "", "own", "fleet/east", of=CHARTS)
    name = retry_timer("fleet/east", "own")
    fleet.records.timers.set(name, fleet.clock.now(), apply.message().body)
    queues = {inbox: queue for inbox, queue in fleet.queues.items() if inbox != CHARTS}

    assert schedule(fleet, Publisher(queues)).tick().published == 1
    [found] = fleet.queues["apply"].receive(10, wait=timedelta(0))
    assert found.message.body["profile"] == "own"


def test_two_ticks_at_once_lose_nothing(fleet: Fleet) -> None:
    """Each message comes once or twice, and each resync has one next time."""
    set_resyncs(fleet, 100)
    publishers = [Watched(fleet, lambda _: None) for _ in range(2)]
    ticks = [
        threading.Thread(target=schedule(fleet, each, WorkerPool(4, at_one=4)).tick)
        for each in publishers
    ]
    for each in ticks:
        each.start()
    for each in ticks:
        each.join(PATIENCE)

    swept = Counter(
        each.cluster  # type: ignore[attr-defined]
        for publisher in publishers
        for batch in publisher.batches
        for each in batch
    )
    assert swept.keys() == {f"fleet/c{number}" for number in range(100)}
    assert max(swept.values()) <= 2
    assert late(fleet) == []
    for number in range(100):
        timer = fleet.records.timers.get(sweep_timer(f"fleet/c{number}"))
        assert timer
        assert timer.value.at > fleet.clock.now()


def test_timers_that_a_clock_set_which_was_ahead_are_pulled_in_by_several_ticks(
    fleet: Fleet,
) -> None:
    """A tick does what it can in some seconds, and has the next one go on."""
    hour = timedelta(hours=1)
    fleet.clock.jump(hour)
    set_resyncs(fleet, 40, late=timedelta(0))
    fleet.clock.jump(-hour)
    real = fleet.store._store

    class Slow:
        """A store whose every write takes a while."""

        def __getattr__(self, name: str) -> Any:
            if name == "put":
                fleet.clock.advance(timedelta(seconds=0.1))
            return getattr(real, name)

    fleet.store._store = Slow()  # type: ignore[assignment]
    fleet.schedule.pull_in()
    left = ahead(fleet)
    house = fleet.records.timers.get(HOUSE)

    assert 0 < left < 40
    assert house
    assert house.value.at <= fleet.clock.now()
    for _ in range(4):
        fleet.schedule.tick()
    assert ahead(fleet) == 0
