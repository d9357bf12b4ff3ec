"""What each tick of a cloud's timer does first, and where its clock, or another one, was wrong."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bellhop.errors import UnreachableError
from bellhop.logs import Log
from bellhop.runtime.cloud.tick import Due, Ticker
from bellhop.state.messages import Resolve
from tests.fakes.fleet import Fleet

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def resources(fleet: Fleet, pending: list[timedelta] | None = None) -> Any:
    return SimpleNamespace(
        records=fleet.records,
        publisher=fleet.publisher,
        settings=fleet.settings,
        log=Log(io.StringIO()),
        report_pending=(pending if pending is not None else []).append,
    )


class Ordered(Due):
    """A tick that notes what is done by the time delayed messages are published, and fails then."""

    def __init__(self, here: Any, fleet: Fleet) -> None:
        super().__init__(here)
        self._fleet = fleet
        self.seen: list[tuple[bool, int]] = []
        self.concluded = 0

    def publish_delayed(self) -> int:
        heartbeat = self._records.pulses.get()
        alive = heartbeat is not None and heartbeat.at == self._records.clock.now()
        self.seen.append((alive, self._fleet.queues["deploy"].backlog().waiting))
        message = "cannot publish: Pub/Sub does not answer"
        raise UnreachableError(message)

    def conclude(self) -> None:
        self.concluded += 1


def test_the_heartbeat_and_delayed_messages_come_before_timers(tmp_path: Path) -> None:
    """A step that fails keeps no other from being done; then the tick fails."""
    fleet = Fleet(tmp_path)
    pending: list[timedelta] = []
    due = Ordered(resources(fleet, pending), fleet)
    at = fleet.clock.now() - 5 * MINUTE
    fleet.records.timers.set("late", at, Resolve("p").message().body)
    with pytest.raises(UnreachableError, match="Pub/Sub"):
        due.tick()

    assert due.seen == [(True, 0)]
    assert fleet.queues["deploy"].backlog().waiting == 1
    assert due.concluded == 1
    assert pending == [5 * MINUTE]
    heartbeat = fleet.records.pulses.get()
    assert heartbeat
    assert heartbeat.pending == at
    fleet.close()


def test_a_tick_that_fails_publishes_its_measurements(tmp_path: Path) -> None:
    """What waits, and which clusters need attention, is needed then above all."""
    fleet = Fleet(tmp_path)
    here, ended = resources(fleet), []
    here.begin = lambda: None
    here.end = lambda: ended.append(fleet.records.pulses.get())
    ticker = Ticker(lambda _: Ordered(here, fleet), lambda: here)
    with pytest.raises(UnreachableError, match="Pub/Sub"):
        ticker({})

    [heartbeat] = ended
    assert heartbeat
    fleet.close()


def test_an_idle_tick_writes_its_heartbeat_only(tmp_path: Path) -> None:
    """Each write is paid for, each minute."""
    fleet = Fleet(tmp_path)
    due = Due(resources(fleet))
    due.tick()
    fleet.clock.advance(MINUTE)
    fleet.store.counts.clear()
    due.tick()

    assert (fleet.store.counts["put"], fleet.store.counts["delete"]) == (1, 0)
    fleet.close()


def test_pulls_in_what_a_clock_set_that_was_ahead(tmp_path: Path) -> None:
    """A tick that finds the one before in the future looks for it; no house work fires so soon."""
    fleet = Fleet(tmp_path)
    due = Due(resources(fleet))
    due.tick()
    with fleet.clock.behind(timedelta(minutes=-30)):
        due.tick()
        at = fleet.clock.now() + 2 * SECOND
        fleet.records.timers.set("later", at, Resolve("p").message().body)
    due.tick()
    fleet.clock.advance(2 * SECOND)
    due.tick()

    assert fleet.records.timers.get("later") is None
    fleet.close()
