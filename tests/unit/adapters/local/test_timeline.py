"""What a clock that is set does to the files: nothing, for what lasts lasts as long as was said."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.store import SqliteStore
from bellhop.ports.queue import Again, Message
from bellhop.ports.store import Item
from tests.fakes.clock import FakeClock

NOW, SECOND, DAY = timedelta(0), timedelta(seconds=1), timedelta(days=1)
JUMPS = [60 * DAY, -60 * DAY, timedelta(hours=1)]


class Machine(FakeClock):
    """A clock whose machine can be switched off: its time since boot begins again."""

    boots = 1

    def boot(self) -> str:
        """Return the id of the present boot."""
        return f"boot {self.boots}"

    def reboot(self, off: timedelta) -> None:
        """Be off for a while, and boot."""
        self.jump(off)
        self.boots, self._steady = self.boots + 1, NOW


def queue_of(folder: Path, clock: FakeClock) -> SqliteQueue:
    return SqliteQueue(folder / "queue.db", "inbox", clock=clock, visibility=60 * SECOND)


def taken(queue: SqliteQueue) -> list[object]:
    return [each.message.body["n"] for each in queue.receive(10, wait=NOW)]


@pytest.mark.parametrize("by", JUMPS)
def test_an_item_outlasts_a_clock_that_is_wrong_for_a_while(tmp_path: Path, by: timedelta) -> None:
    """It is neither deleted nor hidden while the clock is wrong, and ends when it was to."""
    clock = FakeClock()
    store = SqliteStore(tmp_path / "store.db", clock=clock)
    store.put(Item("a", "before", {}, expires_at=clock.now() + 7 * DAY))

    clock.jump(by)
    store.put(Item("a", "meanwhile", {}, expires_at=clock.now() + 7 * DAY))
    store.delete_expired()
    there = [item.sort for item in store.query("a")]
    clock.jump(-by)
    store.delete_expired()
    clock.advance(7 * DAY - SECOND)
    store.delete_expired()

    assert there == [item.sort for item in store.query("a")] == ["before", "meanwhile"]
    clock.advance(SECOND)
    assert list(store.query("a")) == []
    assert store.delete_expired() == 2


def test_an_item_lasts_longer_by_the_time_that_the_machine_was_off(tmp_path: Path) -> None:
    """Only the wall clock could say how long that was, and it may be wrong after a boot."""
    clock = Machine()
    store = SqliteStore(tmp_path / "store.db", clock=clock)
    store.put(Item("a", "b", {}, expires_at=clock.now() + 7 * DAY))
    clock.advance(DAY)
    store.delete_expired()
    store.close()
    clock.reboot(off=90 * DAY)
    store = SqliteStore(tmp_path / "store.db", clock=clock)

    store.delete_expired()
    clock.advance(6 * DAY - SECOND)
    assert store.get("a", "b")
    clock.advance(SECOND)
    assert store.get("a", "b") is None


@pytest.mark.parametrize("by", JUMPS)
def test_what_is_published_by_a_wrong_clock_is_taken_at_once(tmp_path: Path, by: timedelta) -> None:
    """Its time is the queue's own, whatever the clock says before or after."""
    clock = FakeClock()
    queue = queue_of(tmp_path, clock)

    clock.jump(by)
    queue.publish([Message({"n": 1}, "g")])
    clock.jump(-by)

    assert taken(queue) == [1]


@pytest.mark.parametrize("by", JUMPS)
def test_a_pause_lasts_as_long_as_was_asked(tmp_path: Path, by: timedelta) -> None:
    """So does the time for which a worker may be silent."""
    clock = FakeClock()
    queue = queue_of(tmp_path, clock)
    queue.publish([Message({"n": 1}, "g")])
    clock.jump(by)
    [delivery] = queue.receive(10, wait=NOW)
    queue.settle(delivery, Again(10 * SECOND, "not yet"))
    clock.jump(-by)

    assert taken(queue) == []
    clock.advance(10 * SECOND)
    assert taken(queue) == [1]
    assert taken(queue) == []
    clock.jump(by)
    assert taken(queue) == []
    clock.jump(-by)
    clock.advance(60 * SECOND)
    assert taken(queue) == [1]


def test_says_since_when_a_message_waits_by_the_wall_clock(tmp_path: Path) -> None:
    """People read it, and their clock is the one that was put right."""
    clock = FakeClock()
    queue = queue_of(tmp_path, clock)
    clock.jump(DAY)
    queue.publish([Message({"n": 1}, "g")])
    clock.jump(-DAY)
    clock.advance(5 * SECOND)

    assert queue.backlog().since == clock.now() - 5 * SECOND


def test_nothing_waits_for_longer_after_a_boot(tmp_path: Path) -> None:
    """No worker is left that holds a message, and time since boot begins again."""
    clock = Machine()
    queue = queue_of(tmp_path, clock)
    queue.publish([Message({"n": 1}, "g"), Message({"n": 2}, "h")])
    [delivery, _] = queue.receive(10, wait=NOW)
    queue.settle(delivery, Again(DAY, "not yet"))
    queue.close()

    clock.reboot(off=-DAY)
    queue = queue_of(tmp_path, clock)

    assert sorted(map(str, taken(queue))) == ["1", "2"]
