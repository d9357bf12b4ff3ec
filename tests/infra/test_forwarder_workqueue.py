"""Whose turn it is to be looked at, and what a kill leaves of that."""

from __future__ import annotations

import io
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.pending import Journal, Known, PendingObject
from bellhop.forwarder.workqueue import BURST, DelayingQueue
from bellhop.ingest.admission import Hint
from bellhop.logs import Log
from tests.waiting import eventually

EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"


def key(name: str = "a") -> ObjectKey:
    return ObjectKey(GVK("", "v1", "ConfigMap"), "default", name)


def hint(uid: str = "u", before: int = 0, name: str = "a") -> Hint:
    return Hint(key(name), uid, before)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Journal]:
    spool = Journal(tmp_path)
    yield spool
    spool.close()


@pytest.fixture
def queue(spool: Journal) -> DelayingQueue:
    return DelayingQueue(spool, Log(io.StringIO()))


def test_spools_an_object_once(spool: Journal) -> None:
    """A second hint changes the row, keeps what the first knew, and since when it is owed."""
    spool.put(PendingObject.of(hint("u", 5), EARLY, 1))
    spool.put(PendingObject.of(hint("v", 0), LATE, 2))

    [pending] = spool.owed()
    assert (pending.uid, pending.before, pending.serial) == ("v", 0, 2)
    assert (pending.known, pending.reported_at, pending.sure) == (Known("u", 5), EARLY, False)


def test_forgets_only_objects_without_a_new_hint(spool: Journal) -> None:
    """A row is dropped up to a serial."""
    spool.put(PendingObject.of(hint(), EARLY, 2))
    spool.forget([(key(), 1)])
    assert len(spool.owed()) == 1
    spool.forget([(key(), 2)])
    assert spool.owed() == []


def test_restores_what_an_earlier_process_owed(tmp_path: Path, spool: Journal) -> None:
    """Names with slashes and dots come back as they were, and later hints get later serials."""
    name = ObjectKey(GVK("rbac.authorization.k8s.io", "v1", "ClusterRole"), "", "system:a/b")
    spool.put(PendingObject.of(Hint(name, "u", 5), EARLY, 7))
    again = Journal(tmp_path)
    queue = DelayingQueue(again, Log(io.StringIO()))
    assert queue.restore() == 1

    turn = queue.take()

    assert turn is not None
    assert turn.pending.key == name
    queue.add(hint(), LATE)
    following = queue.take()
    assert following is not None
    assert following.pending.serial == 8
    again.close()


def test_gives_an_object_to_one_reader_at_a_time(queue: DelayingQueue) -> None:
    """An object that changes while a reader has it waits until the reader is done."""
    queue.add(hint("u", 5), EARLY)
    first = queue.take()
    assert first is not None
    queue.add(hint("u", 6), LATE)
    queue.add(hint(name="other"), LATE)
    other = queue.take()
    assert other is not None
    assert other.pending.key == key("other")
    queue.finish(other)
    queue.finish(first)

    again = queue.take()

    assert again is not None
    assert (again.pending.before, again.pending.reported_at) == (6, LATE)


def test_reads_again_after_a_hint_during_a_read(queue: DelayingQueue) -> None:
    """Both hints are one then, and its looks count from the beginning."""
    queue.add(hint("u", 5), EARLY)
    turn = queue.take()
    assert turn is not None
    turn.looks = 7
    queue.add(hint("u", 6), LATE)
    queue.requeue(turn, 60)

    again = queue.take()

    assert again is not None
    assert (again.pending.before, again.pending.reported_at, again.looks) == (6, EARLY, 0)


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("looking", [False, True])
def test_what_others_write_meanwhile_is_not_our_own(
    queue: DelayingQueue, *, first: bool, second: bool, looking: bool
) -> None:
    """Be it merged before the look, or settled by what the look has shown."""
    queue.add(replace(hint("u", 5), own=first), EARLY)
    turn = queue.take() if looking else None
    queue.add(replace(hint("u", 6), own=second), LATE)
    turn = turn or queue.take()
    assert turn
    queue.absorb(turn, Known("u", 9))

    assert turn.pending.own is (first and second)


def test_lets_no_burst_put_off_a_look_for_long(spool: Journal) -> None:
    """An object that changes without end is looked at all the same."""
    now = [100.0]
    queue = DelayingQueue(spool, Log(io.StringIO()), clock=lambda: now[0])
    for version in range(12):
        queue.add(hint("u", version), EARLY)
        now[0] += BURST / 10

    assert (queue._seconds_until_due() or 0) <= 0
    assert queue.take() is not None


def test_wakes_a_reader_for_what_is_due_earlier(queue: DelayingQueue) -> None:
    """A reader that sleeps towards a later turn takes an earlier one when it comes."""
    queue.add(hint(name="late"), EARLY)
    late = queue.take()
    assert late is not None
    queue.requeue(late, 600)
    taken: list[Any] = []
    reader = threading.Thread(target=lambda: taken.append(queue.take()))
    reader.start()
    eventually("the reader sleeps", lambda: queue._changed._waiters)  # type: ignore[attr-defined]
    queue.add(hint(name="early"), EARLY)
    reader.join(60)

    assert [turn.pending.key for turn in taken] == [key("early")]


def test_says_what_is_owed_until_it_is_forgotten(queue: DelayingQueue) -> None:
    """Looked at is not sent: it stays owed."""
    queue.add(hint("u", 5), EARLY)
    turn = queue.take()
    assert turn is not None
    queue.finish(turn)
    assert queue.owed() == (1, EARLY)
    assert queue.wait_until_clear(0) is False
    queue.forget([(key(), turn.pending.serial)])

    assert queue.owed() == (0, "")
    assert queue.wait_until_clear(0) is True


def test_sends_readers_home(queue: DelayingQueue) -> None:
    """A closed queue has no turns."""
    queue.add(hint(), EARLY)
    queue.close()

    assert queue.take() is None


def test_goes_on_in_memory_when_the_disk_fails(tmp_path: Path) -> None:
    """A hint that cannot be spooled is looked at all the same, and the log says so."""
    written = io.StringIO()
    spool = Journal(tmp_path)
    queue = DelayingQueue(spool, Log(written))
    spool.close()
    queue.add(hint(), EARLY)

    turn = queue.take()

    assert turn is not None
    assert "Cannot spool" in written.getvalue()


FORMER = """CREATE TABLE owed (
    key TEXT PRIMARY KEY, uid TEXT NOT NULL, before INTEGER NOT NULL, known_uid TEXT NOT NULL,
    known_version INTEGER NOT NULL, rang TEXT NOT NULL, serial INTEGER NOT NULL
) STRICT, WITHOUT ROWID"""


def named(uid: str = "u", before: int = 0) -> Hint:
    return replace(hint(uid, before), named=True)


def test_a_name_outlives_a_kill(tmp_path: Path, queue: DelayingQueue) -> None:
    queue.add(named("u", 5), EARLY)

    again = Journal(tmp_path)
    [pending] = again.owed()
    again.close()

    assert (pending.named, pending.before) == (True, 5)


def test_reads_the_journal_of_an_earlier_version(tmp_path: Path) -> None:
    """Nothing in it was to be sent by its name only."""
    file = sqlite3.connect(tmp_path / "owed.db")
    file.execute(FORMER)
    file.execute("INSERT INTO owed VALUES (?, 'u', 5, 'u', 5, ?, 3)", (str(key()), EARLY))
    file.execute(f"PRAGMA application_id = {0x42454C46}")
    file.execute("PRAGMA user_version = 1")
    file.commit()
    file.close()

    spool = Journal(tmp_path)
    [pending] = spool.owed()
    spool.put(PendingObject.of(named(), LATE, 4))
    spool.close()

    assert (pending.key, pending.named, pending.serial) == (key(), False, 3)


@pytest.mark.parametrize("first", [named("u", 5), hint("u", 5)], ids=["name first", "read first"])
def test_an_object_is_read_if_one_of_its_hints_asks_for_it(
    queue: DelayingQueue, first: Hint
) -> None:
    """A source selects a kind that is of the configuration, too: two webhooks send one write."""
    queue.add(first, EARLY)
    queue.add(replace(first, named=not first.named), LATE)

    item = queue.take()

    assert item
    assert not item.pending.named


@pytest.mark.parametrize("restarts", [False, True])
def test_no_name_replaces_an_object_that_is_not_sent_yet(
    spool: Journal, queue: DelayingQueue, *, restarts: bool
) -> None:
    """Once it is sent, later names are only names again."""
    queue.add(hint("u", 5), EARLY)
    item = queue.take()
    assert item
    queue.finish(item)
    if restarts:
        queue = DelayingQueue(spool, Log(io.StringIO()))
        queue.restore()

    queue.add(named("u", 6), LATE)
    again = queue.take()
    assert again
    assert not again.pending.named
    assert not any(each.named for each in spool.owed())

    queue.finish(again)
    queue.forget([(key(), again.pending.serial)])
    queue.add(named("u", 7), LATE)
    last = queue.take()
    assert last
    assert last.pending.named
