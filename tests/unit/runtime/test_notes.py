"""Lines of the event log are written a moment after they were noted, and all of them at the end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.local.store import SqliteStore
from bellhop.errors import UnreachableError
from bellhop.logs import Log
from bellhop.ports.store import Item
from bellhop.runtime.embedded.notes import Notes
from bellhop.state.event_log import Entry, EventLog
from tests.fakes.clock import START, FakeClock
from tests.waiting import eventually

HOUR = START.isoformat()[:13]


class Sometimes:
    """A store that takes what is written where it is asked to."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.takes = True

    def put(self, item: Item, **options: Any) -> Item:
        if not self.takes:
            raise UnreachableError("The store does not answer.")
        return self._store.put(item, **options)

    def query(self, *args: Any, **options: Any) -> Any:
        return self._store.query(*args, **options)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Sometimes:
    return Sometimes(SqliteStore(tmp_path / "store.db", clock=clock))


@pytest.fixture
def event_log(store: Sometimes) -> EventLog:
    return EventLog(store)  # type: ignore[arg-type]


def note(event_log: EventLog, trace: str) -> None:
    event_log.note(Entry(START, trace, "rang", "a/a", ""))


def traces(event_log: EventLog) -> list[str]:
    return sorted(entry.trace for _, entry in event_log.of("a/a", HOUR))


def test_writes_what_gathered_and_goes_on(event_log: EventLog, clock: FakeClock) -> None:
    """Not at once, but soon; and what comes after that, too."""
    notes = Notes(event_log, clock, Log(io.StringIO()))
    notes.start()
    note(event_log, "1")
    assert traces(event_log) == []
    eventually("the first is written", lambda: traces(event_log) == ["1"])
    note(event_log, "2")
    eventually("the second is written", lambda: traces(event_log) == ["1", "2"])
    notes.stop()


def test_writes_all_when_it_ends(event_log: EventLog, clock: FakeClock) -> None:
    """Nothing that was noted before is lost but by a kill."""
    notes = Notes(event_log, clock, Log(io.StringIO()))
    notes.start()
    for number in range(5):
        note(event_log, str(number))
    notes.stop()

    assert traces(event_log) == ["0", "1", "2", "3", "4"]


def test_says_how_many_lines_were_lost_and_goes_on(
    event_log: EventLog, store: Sometimes, clock: FakeClock
) -> None:
    """A store that is away for a while loses lines, and stops nothing."""
    output = io.StringIO()
    notes = Notes(event_log, clock, Log(output))
    notes.start()
    store.takes = False
    for number in range(3):
        note(event_log, str(number))
    eventually(
        "three lines are logged",
        lambda: '"lines": 3' in output.getvalue() or '"lines":3' in output.getvalue(),
    )
    store.takes = True
    note(event_log, "after")
    notes.stop()

    assert traces(event_log) == ["after"]
