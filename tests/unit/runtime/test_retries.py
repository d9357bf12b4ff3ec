"""Retried messages are recorded, so that the schedule can report the oldest."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bellhop.errors import UnreachableError
from bellhop.logs import Log
from bellhop.ports.queue import Again, Delivery, Done, GivenUp, Result
from bellhop.runtime.aws.metrics import Metrics
from bellhop.runtime.cloud import retries
from bellhop.runtime.cloud.tick import Due
from bellhop.state.consumer import WAITS
from bellhop.state.messages import Resolve
from bellhop.state.retries import Retries
from tests.fakes.fleet import Fleet

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
AGAIN = Again(SECOND, "the store is busy")


class Unreachable:
    """A store that answers nothing."""

    def get(self, *_: object, **__: object) -> None:
        raise UnreachableError("the store does not answer")

    def put(self, *_: object, **__: object) -> None:
        raise UnreachableError("the store does not answer")


class Stand:
    """One installation of a cloud, on a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet(folder)
        self.reported: list[timedelta] = []
        self.here: Any = SimpleNamespace(
            records=self.fleet.records,
            publisher=self.fleet.publisher,
            settings=self.fleet.settings,
            log=Log(io.StringIO()),
            report_pending=self.reported.append,
        )
        self.due = Due(self.here)

    def attempt(self, number: int, result: Result, name: str = "shop") -> None:
        """Have a worker try a message for the nth time."""
        worked = [(Delivery(Resolve(name).message(), "id", "receipt", number), result)]

        assert list(retries.record(worked, self.here)) == worked

    def tick(self) -> timedelta | None:
        """Return what the schedule reports now, and has in its heartbeat."""
        self.reported.clear()
        self.due.tick()
        heartbeat = self.fleet.records.pulses.get()
        assert heartbeat is not None
        assert bool(self.reported) == bool(heartbeat.pending)
        return self.reported[0] if self.reported else None


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    one = Stand(tmp_path)
    one.tick()
    yield one
    one.fleet.close()


def test_reports_the_oldest_retried_message(stand: Stand) -> None:
    """Each further attempt leaves its age as it is; its end takes it away."""
    stand.attempt(4, AGAIN)
    stand.fleet.clock.advance(5 * MINUTE)
    stand.attempt(5, AGAIN)
    stand.attempt(4, AGAIN, "later")

    assert stand.tick() == 5 * MINUTE
    stand.attempt(6, Done())
    stand.fleet.clock.advance(3 * MINUTE)
    assert stand.tick() == 3 * MINUTE
    stand.attempt(5, GivenUp("unreadable"), "later")
    assert stand.tick() is None


@pytest.mark.parametrize(
    ("number", "result"),
    [
        pytest.param(3, AGAIN, id="a few attempts"),
        pytest.param(12, AGAIN, id="the last attempt"),
        pytest.param(5, WAITS, id="a message that nobody tried"),
        pytest.param(5, Done(), id="a message that was never recorded"),
    ],
)
def test_records_nothing_of(stand: Stand, number: int, result: Result) -> None:
    """Writes are for messages that wait: not for a failure that passes, nor for dead letters."""
    stand.attempt(number, result)
    stand.fleet.clock.advance(5 * MINUTE)

    assert stand.tick() is None


def test_forgets_a_message_whose_end_nobody_recorded(stand: Stand) -> None:
    """SQS may dead-letter it without a worker: the alarm ends all the same."""
    stand.attempt(4, AGAIN)
    stand.fleet.clock.advance(timedelta(hours=7))
    stand.tick()

    assert stand.tick() is None


def test_a_store_that_fails_keeps_no_result_back(stand: Stand) -> None:
    """The measure is worth less than the message."""
    store: Any = Unreachable()
    stand.here.records = SimpleNamespace(retries=Retries(store, stand.fleet.clock))

    stand.attempt(4, AGAIN)


SILENT = Delivery(Resolve("shop").message(), "id", "receipt", 1, 4)
"""A delivery of a message of which three workers reported nothing."""


def test_a_message_that_kills_its_workers_is_given_up(stand: Stand) -> None:
    """As many may begin it as there are attempts; it is no retried message meanwhile."""
    attempts = stand.fleet.settings.attempts

    assert [retries.begin(stand.here, SILENT) for _ in range(attempts)] == [None] * attempts
    assert stand.tick() is None
    ended = retries.begin(stand.here, SILENT)
    assert ended
    assert ended.reason.startswith(f"{attempts} workers began it")


def test_a_reported_failure_ends_the_count_of_silent_workers(stand: Stand) -> None:
    """The failure counts from when the first worker began."""
    for _ in range(stand.fleet.settings.attempts):
        retries.begin(stand.here, SILENT)
    stand.fleet.clock.advance(5 * MINUTE)
    stand.attempt(4, AGAIN)

    assert stand.tick() == 5 * MINUTE
    assert retries.begin(stand.here, SILENT) is None


def test_a_message_that_came_at_once_costs_no_record(stand: Stand) -> None:
    """Nothing is written of the first three deliveries."""
    early = Delivery(SILENT.message, "id", "receipt", 1, 3)

    assert [retries.begin(stand.here, early) for _ in range(20)] == [None] * 20


def test_a_store_that_fails_keeps_no_message_back(stand: Stand) -> None:
    """Nobody knows how many began it: it is worked on."""
    stand.here.records = SimpleNamespace(retries=Retries(Unreachable(), stand.fleet.clock))  # type: ignore[arg-type]

    assert retries.begin(stand.here, SILENT) is None


def test_reports_a_timer_that_fires_late(stand: Stand) -> None:
    """A schedule that ticks seldom, or has too much to publish, is seen by it."""
    now = stand.fleet.clock.now()
    stand.fleet.records.timers.set("late", now + MINUTE, Resolve("shop").message().body)
    stand.fleet.clock.advance(5 * MINUTE)

    assert stand.tick() == 4 * MINUTE
    assert stand.tick() is None


def test_reports_nothing_of_what_is_on_time(stand: Stand) -> None:
    """Ticks are a minute apart, and an idle installation pays for no metric."""
    now = stand.fleet.clock.now()
    stand.fleet.records.timers.set("soon", now + SECOND, Resolve("shop").message().body)
    stand.fleet.clock.advance(MINUTE)

    assert stand.tick() is None


def test_a_measured_value_is_a_metric_without_a_duration() -> None:
    """A tick in which nothing else happened does not count among the invocations' durations."""
    output = io.StringIO()
    metrics = Metrics("prod", Log(output))
    metrics.measure("OldestPending", 300)
    metrics.publish()
    metrics.publish()

    [line] = output.getvalue().splitlines()
    assert '"OldestPending":300' in line.replace(" ", "")
    assert '"Unit":"Seconds"' in line.replace(" ", "")
    assert "Milliseconds" not in line
