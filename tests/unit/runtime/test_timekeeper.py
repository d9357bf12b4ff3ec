"""The schedule of one machine sleeps while nothing is due, and misses nothing that is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop import __version__
from bellhop.logs import Log
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.runtime.embedded.workers import AT_MOST, HEARTBEAT, Timekeeper
from bellhop.settings import Settings
from bellhop.state.heartbeats import WorkerHeartbeat
from bellhop.state.messages import Resolve
from tests.fakes.clock import FakeClock

SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def here(tmp_path: Path, clock: FakeClock) -> Iterator[Embedded]:
    opened = open_state(tmp_path / "state", Settings(), clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def keeper(here: Embedded) -> Timekeeper:
    """A timekeeper that has come to rest."""
    keeper = Timekeeper(here, Log(io.StringIO()))
    while keeper.tick():
        pass
    published(here)
    return keeper


def published(here: Embedded) -> list[object]:
    """Take what was published, whatever inbox it is for."""
    return [
        delivery.message.body["do"]
        for queue in here.queues.values()
        for delivery in queue.receive(100, wait=timedelta(0))
    ]


def set_timer(here: Embedded, after: timedelta) -> None:
    """Have a message published a while from now."""
    records = here.installation.records
    records.timers.set("later", records.clock.now() + after, Resolve("p").message().body)


def test_rests_while_nobody_writes(keeper: Timekeeper, here: Embedded) -> None:
    """A look is many questions, and the answer is known."""
    set_timer(here, timedelta(hours=1))

    assert [keeper.tick() for _ in range(3)] == [True, False, False]


def test_fires_a_timer_when_its_time_comes(
    keeper: Timekeeper, here: Embedded, clock: FakeClock
) -> None:
    """Nobody needs to write for that."""
    set_timer(here, 2 * SECOND)
    keeper.tick()
    clock.advance(SECOND)
    early = keeper.tick(), published(here)
    clock.advance(SECOND)

    assert early == (False, [])
    assert (keeper.tick(), published(here)) == (True, ["resolve"])


def test_notices_what_another_process_sets(
    keeper: Timekeeper, here: Embedded, clock: FakeClock
) -> None:
    """A command of the CLI has a connection of its own to the same file."""
    other = open_state(here.state, Settings(), clock=clock)
    set_timer(other, timedelta(0))
    other.close()

    assert (keeper.tick(), published(here)) == (True, ["resolve"])


def test_looks_now_and_then_whatever_it_knows(keeper: Timekeeper, clock: FakeClock) -> None:
    """What a change left behind when it died is found though nobody writes any more."""
    clock.advance(AT_MOST)

    assert keeper.tick()


def test_writes_that_it_is_there(here: Embedded, clock: FakeClock) -> None:
    """Twice a minute, however often it ticks; since when it began stays."""
    begun = clock.now()
    keeper = Timekeeper(here, Log(io.StringIO()))
    heartbeats = here.installation.records.pulses
    seen = []
    for _ in range(61):
        keeper.tick()
        seen.append(heartbeats.get())
        clock.advance(SECOND)

    expected = [WorkerHeartbeat(begun, begun + each * HEARTBEAT, __version__) for each in range(3)]
    assert list(dict.fromkeys(seen)) == expected


def test_a_clock_that_was_set_back_ends_no_heartbeat(here: Embedded, clock: FakeClock) -> None:
    """What was written in the future is not waited for."""
    keeper = Timekeeper(here, Log(io.StringIO()))
    keeper._heartbeat = WorkerHeartbeat(clock.now(), clock.now() + timedelta(hours=1))
    keeper.tick()
    heartbeat = here.installation.records.pulses.get()

    assert heartbeat is not None
    assert heartbeat.at == clock.now()


DAY = timedelta(days=1)


def test_pulls_in_what_a_clock_set_that_was_ahead(
    keeper: Timekeeper, here: Embedded, clock: FakeClock
) -> None:
    """It is due as long after now as it was to be after then, whatever nobody writes meanwhile."""
    clock.jump(DAY)
    keeper.tick()
    set_timer(here, 2 * SECOND)
    keeper.tick()
    published(here)
    clock.jump(-DAY)
    looked = keeper.tick()
    early = published(here)
    clock.advance(2 * SECOND)
    keeper.tick()

    assert (looked, early) == (True, [])
    assert "resolve" in published(here)


def test_a_new_process_pulls_in_what_one_before_set(here: Embedded, clock: FakeClock) -> None:
    """The clock may go back while nobody works."""
    clock.jump(DAY)
    set_timer(here, 2 * SECOND)
    clock.jump(-DAY)
    keeper = Timekeeper(here, Log(io.StringIO()))
    keeper.tick()
    clock.advance(2 * SECOND)
    keeper.tick()

    assert "resolve" in published(here)


def test_writes_that_its_clock_jumped(keeper: Timekeeper, here: Embedded, clock: FakeClock) -> None:
    """By how much the last time, and by how much in all; time that passes is no jump."""
    clock.advance(DAY)
    keeper.tick()
    heartbeats = here.installation.records.pulses
    calm = heartbeats.get()
    clock.jump(DAY)
    keeper.tick()
    ahead = heartbeats.get()
    clock.jump(-DAY)
    keeper.tick()
    right = heartbeats.get()

    assert calm
    assert calm.jumped_at is None
    assert ahead
    assert (ahead.jumped_at, ahead.jumped, ahead.off) == (clock.now() + DAY, 86400, 86400)
    assert right
    assert (right.at, right.jumped_at, right.jumped, right.off) == (
        clock.now(),
        clock.now(),
        -86400,
        0,
    )
