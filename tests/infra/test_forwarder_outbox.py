"""What waits to be sent: the newest of each object, in batches, and only so much of it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.outbox import BATCH_BYTES, BATCH_ITEMS, MOST_BYTES, MOST_ITEMS, Item, Outbox

EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"


def key(name: str = "a") -> ObjectKey:
    return ObjectKey(GVK("", "v1", "ConfigMap"), "default", name)


def item(name: str = "a", serial: int = 1, size: int = 10, reported_at: str = LATE) -> Item:
    return Item(key(name), serial, reported_at, b"x" * size)


def names(items: list[Item]) -> list[str]:
    return [each.key.name for each in items]


def test_batches_in_order_and_within_limits() -> None:
    """So many items, so many bytes; one that is larger than that is sent by itself."""
    outbox = Outbox()
    outbox.put(item("large", size=2 * BATCH_BYTES))
    for number in range(BATCH_ITEMS + 1):
        outbox.put(item(str(number)))
    half = BATCH_BYTES // 2 + 1
    outbox.put(item("half", size=half))
    outbox.put(item("other half", size=half))

    assert names(outbox.take()) == ["large"]
    assert names(outbox.take()) == [str(number) for number in range(BATCH_ITEMS)]
    assert names(outbox.take()) == [str(BATCH_ITEMS), "half"]
    assert names(outbox.take()) == ["other half"]


def test_keeps_the_newest_of_an_object() -> None:
    """A newer item replaces an older one and is owed as long as that."""
    outbox = Outbox()
    outbox.put(item(serial=1, reported_at=EARLY))
    outbox.put(item(serial=2))

    [found] = outbox.take()

    assert (found.serial, found.reported_at) == (2, EARLY)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_what_was_written_by_others_too_is_not_our_own(
    *, first: bool, second: bool, back: bool
) -> None:
    """One state stands for all writes before it, sent in vain or not sent yet."""
    outbox = Outbox()
    outbox.put(replace(item(serial=1), own=first))
    taken = outbox.take() if back else []
    outbox.put(replace(item(serial=2), own=second))
    outbox.put_back(taken)

    [found] = outbox.take()

    assert found.own is (first and second)


def test_takes_back_what_could_not_be_sent() -> None:
    """It is first again, in its order, except where there is newer."""
    outbox = Outbox()
    for name in "abc":
        outbox.put(item(name, reported_at=EARLY))
    batch = outbox.take()
    outbox.put(item("d"))
    outbox.put(item("b", serial=2))
    outbox.put_back(batch)

    found = outbox.take()

    assert names(found) == ["a", "c", "d", "b"]
    assert (found[-1].serial, found[-1].reported_at) == (2, EARLY)


def test_lets_an_unsent_item_stand_for_a_later_hint() -> None:
    """Waiting or on its way, it covers the later serial; once settled, it does not."""
    outbox = Outbox()
    outbox.put(item(serial=1))
    assert outbox.cover(key(), 2)
    batch = outbox.take()
    assert outbox.cover(key(), 3)

    assert outbox.settle(batch) == [(key(), 3)]
    assert not outbox.cover(key(), 4)


@pytest.mark.parametrize(
    ("count", "size"), [(MOST_ITEMS, 1), (1, MOST_BYTES)], ids=["many", "large"]
)
def test_holds_readers_up_when_full(count: int, size: int) -> None:
    """Nothing more is read until something was taken to be sent."""
    outbox = Outbox()
    for number in range(count):
        outbox.put(item(str(number), size=size))
    passed = threading.Event()
    reader = threading.Thread(target=lambda: outbox.wait_for_capacity() and passed.set())
    reader.start()
    assert not passed.wait(0.1)
    outbox.take()
    reader.join(30)

    assert passed.is_set()


def test_closes_for_everybody() -> None:
    """Readers and the sender go home, whatever still waits."""
    outbox = Outbox()
    outbox.put(item())
    outbox.close()

    assert outbox.take() == []
    assert outbox.wait_for_capacity() is False


def failed(name: str, size: int = 10) -> Item:
    found = item(name, size=size)
    found.attempts.fail()
    return found


def test_waits_until_an_item_that_failed_is_due() -> None:
    """No longer than that, and others do not wait for it."""
    outbox = Outbox()
    tired = failed("a")
    tired.attempts.due = time.monotonic() + 0.2
    outbox.put(tired)
    outbox.put(item("b"))

    assert names(outbox.take()) == ["b"]
    assert names(outbox.take(0.01)) == []
    assert names(outbox.take()) == ["a"]
    assert time.monotonic() >= tired.attempts.due


@pytest.mark.parametrize("away", [False, True], ids=["waiting", "on its way"])
def test_a_newer_item_inherits_the_attempts(*, away: bool) -> None:
    """An object that changes all the time is not sent all the time."""
    outbox = Outbox()
    tired = failed("a")
    tired.attempts.due = 0.0
    outbox.put(tired)
    batch = outbox.take() if away else []
    tired.attempts.due = time.monotonic() + 0.1
    outbox.put(item("a", serial=2))
    outbox.put_back(batch)
    outbox.put(item("b"))

    assert names(outbox.take()) == ["b"]
    [found] = outbox.take()
    assert (found.serial, found.attempts.failed) == (2, 1)


def test_items_of_an_unreadable_request_go_one_by_one() -> None:
    """Others are batched as ever."""
    outbox = Outbox()
    for each in (item("a"), replace(item("b"), alone=True), replace(item("c"), alone=True)):
        outbox.put(each)
    outbox.put(item("d"))
    outbox.put(item("e"))

    assert [names(outbox.take()) for _ in range(4)] == [["a"], ["b"], ["c"], ["d", "e"]]


@pytest.mark.parametrize(
    ("count", "size"),
    [(MOST_ITEMS // 2 + 1, 1), (1, MOST_BYTES // 2 + 1)],
    ids=["many", "large"],
)
def test_counts_what_is_sent_again(count: int, size: int) -> None:
    """It is crowded where such items take more than half of the limit."""
    outbox = Outbox()
    outbox.put(item("other", size=MOST_BYTES))
    assert (outbox.retrying(), outbox.is_crowded()) == (0, False)
    for number in range(count):
        outbox.put(failed(str(number), size=size))

    assert (outbox.retrying(), outbox.is_crowded()) == (count, True)
