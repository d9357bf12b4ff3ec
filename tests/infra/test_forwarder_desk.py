"""Whose turn it is to be looked at, and what a kill leaves of that."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.journal import Journal
from bellhop.forwarder.pending import Known, PendingObject
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
def desk(spool: Journal) -> DelayingQueue:
    return DelayingQueue(spool, Log(io.StringIO()))


def test_spools_an_object_once(spool: Journal) -> None:
    """A second hint changes the row, keeps what the first knew, and since when it is owed."""
    spool.put(PendingObject.of(hint("u", 5), EARLY, 1))
    spool.put(PendingObject.of(hint("v", 0), LATE, 2))

    [debt] = spool.owed()
    assert (debt.uid, debt.before, debt.serial) == ("v", 0, 2)
    assert (debt.known, debt.rang, debt.sure) == (Known("u", 5), EARLY, False)


def test_forgets_only_what_did_not_ring_again(spool: Journal) -> None:
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
    desk = DelayingQueue(again, Log(io.StringIO()))
    assert desk.restore() == 1

    turn = desk.take()

    assert turn is not None
    assert turn.debt.key == name
    desk.ring(hint(), LATE)
    following = desk.take()
    assert following is not None
    assert following.debt.serial == 8
    again.close()


def test_gives_an_object_to_one_reader_at_a_time(desk: DelayingQueue) -> None:
    """What rings while a reader has it waits until the reader is done."""
    desk.ring(hint("u", 5), EARLY)
    first = desk.take()
    assert first is not None
    desk.ring(hint("u", 6), LATE)
    desk.ring(hint(name="other"), LATE)
    other = desk.take()
    assert other is not None
    assert other.debt.key == key("other")
    desk.finish(other)
    desk.finish(first)

    again = desk.take()

    assert again is not None
    assert (again.debt.before, again.debt.rang) == (6, LATE)


def test_looks_anew_at_what_rang_during_a_look_in_vain(desk: DelayingQueue) -> None:
    """Both hints are one then, and its looks count from the beginning."""
    desk.ring(hint("u", 5), EARLY)
    turn = desk.take()
    assert turn is not None
    turn.looks = 7
    desk.ring(hint("u", 6), LATE)
    desk.later(turn, 60)

    again = desk.take()

    assert again is not None
    assert (again.debt.before, again.debt.rang, again.looks) == (6, EARLY, 0)


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("looking", [False, True])
def test_what_others_write_meanwhile_is_not_our_own(
    desk: DelayingQueue, *, first: bool, second: bool, looking: bool
) -> None:
    """Be it merged before the look, or settled by what the look has shown."""
    desk.ring(replace(hint("u", 5), own=first), EARLY)
    turn = desk.take() if looking else None
    desk.ring(replace(hint("u", 6), own=second), LATE)
    turn = turn or desk.take()
    assert turn
    desk.absorb(turn, Known("u", 9))

    assert turn.debt.own is (first and second)


def test_lets_no_burst_put_off_a_look_for_long(spool: Journal) -> None:
    """An object that rings without end is looked at all the same."""
    now = [100.0]
    desk = DelayingQueue(spool, Log(io.StringIO()), clock=lambda: now[0])
    for version in range(12):
        desk.ring(hint("u", version), EARLY)
        now[0] += BURST / 10

    assert (desk._until_due() or 0) <= 0
    assert desk.take() is not None


def test_wakes_a_reader_for_what_is_due_earlier(desk: DelayingQueue) -> None:
    """A reader that sleeps towards a later turn takes an earlier one when it comes."""
    desk.ring(hint(name="late"), EARLY)
    late = desk.take()
    assert late is not None
    desk.later(late, 600)
    taken: list[Any] = []
    reader = threading.Thread(target=lambda: taken.append(desk.take()))
    reader.start()
    eventually("the reader sleeps", lambda: desk._changed._waiters)  # type: ignore[attr-defined]
    desk.ring(hint(name="early"), EARLY)
    reader.join(60)

    assert [turn.debt.key for turn in taken] == [key("early")]


def test_says_what_is_owed_until_it_is_forgotten(desk: DelayingQueue) -> None:
    """Looked at is not sent: it stays owed."""
    desk.ring(hint("u", 5), EARLY)
    turn = desk.take()
    assert turn is not None
    desk.finish(turn)
    assert desk.owed() == (1, EARLY)
    assert desk.wait_until_clear(0) is False
    desk.forget([(key(), turn.debt.serial)])

    assert desk.owed() == (0, "")
    assert desk.wait_until_clear(0) is True


def test_sends_readers_home(desk: DelayingQueue) -> None:
    """A closed desk has no turns."""
    desk.ring(hint(), EARLY)
    desk.close()

    assert desk.take() is None


def test_goes_on_in_memory_when_the_disk_fails(tmp_path: Path) -> None:
    """A hint that cannot be spooled is looked at all the same, and the log says so."""
    written = io.StringIO()
    spool = Journal(tmp_path)
    desk = DelayingQueue(spool, Log(written))
    spool.close()
    desk.ring(hint(), EARLY)

    turn = desk.take()

    assert turn is not None
    assert "Cannot spool" in written.getvalue()
