"""What every queue keeps to for a worker that fetches: bellhop.ports.queue.Consumer.

Durations are in the rig's units. test_queue_model.py compares long random histories with a model.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest

from bellhop.ports.queue import Again, Done, GivenUp, Message
from tests.contract.courtesies import COUNTS, ONCE, ORDER, PAUSES, SHARES
from tests.contract.inboxes import NOW, drain, fail, message, numbers

PORT = "consumer"
HOLD = 8
"""Units for which a message is held in tests that let the time run out."""

LATE = HOLD + 1


@pytest.fixture
def queue(rig: Any) -> Any:
    return rig.queue()


@pytest.fixture
def brief(rig: Any) -> Any:
    """An inbox that does not hold for long."""
    return rig.queue(visibility=HOLD)


def test_takes_no_more_than_its_limit(queue: Any) -> None:
    """A limit is kept, within a group and over several; none at all takes nothing."""
    queue.publish([message(n) for n in range(5)] + [message(9, "h"), message(8, "i")])

    assert queue.receive(0, wait=NOW) == []
    assert len(queue.receive(2, wait=NOW)) <= 2
    assert len(queue.receive(1, wait=NOW)) == 1


def test_hides_a_message_until_its_visibility_has_passed(rig: Any, brief: Any) -> None:
    """What a worker neither finishes nor gives back is delivered again, and not before its time."""
    brief.publish([message(1)])
    began = rig.now()
    [first] = brief.receive(1, wait=NOW)
    while not (found := brief.receive(10, wait=NOW)):
        rig.pass_time(0.5)

    assert rig.now() - began >= rig.span(HOLD)
    assert numbers(found) == [1]
    assert found[0].id == first.id
    assert found[0].receipt != first.receipt


def test_holds_a_message_for_longer_when_asked(rig: Any) -> None:
    """Extended, a message stays with its worker; after its time it is too late."""
    queue = rig.queue(visibility=2 * HOLD)
    queue.publish([message(1)])
    [first] = queue.receive(1, wait=NOW)
    for _ in range(3):
        rig.pass_time(6)
        extended = rig.now()
        assert queue.extend(first)
    while not (found := queue.receive(10, wait=NOW)):
        rig.pass_time(0.5)

    assert rig.now() - extended >= rig.span(2 * HOLD)
    assert not queue.extend(first)
    assert numbers(found) == [1]


def test_done_ignores_an_expired_receipt(rig: Any, brief: Any) -> None:
    """A worker that was too slow does not finish the delivery of the one after it."""
    brief.publish([message(1)])
    receipts = []
    [slow] = brief.receive(1, wait=NOW)
    for _ in range(2):
        rig.pass_time(LATE)
        brief.settle(slow, Done())
        [after] = brief.receive(1, wait=NOW)
        brief.settle(slow, Done())
        receipts.append(after.receipt)

    assert len({slow.receipt, *receipts}) == 3


def test_done_twice_is_fine(queue: Any) -> None:
    """Finishing the same delivery again changes nothing."""
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)
    queue.settle(first, Done())
    queue.settle(first, Done())

    assert set(drain(queue)) == {1, 2} - set(numbers([first]))


def test_retry_ignores_an_expired_receipt(rig: Any, brief: Any) -> None:
    """A late retry does not free a message that another worker has in flight."""
    brief.publish([message(1)])
    [slow] = brief.receive(1, wait=NOW)
    rig.pass_time(LATE)
    began = rig.now()
    [second] = brief.receive(1, wait=NOW)

    assert brief.settle(slow, Again(NOW, "late")) == Done()
    while not (found := brief.receive(1, wait=NOW)):
        rig.pass_time(0.5)
    assert rig.now() - began >= rig.span(HOLD)
    assert found[0].id == second.id


def test_dead_letters_a_message_at_once_on_request(queue: Any) -> None:
    """`GivenUp` makes a dead letter of a first attempt, and those behind go on."""
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)

    assert queue.settle(first, GivenUp("nobody foresaw it")) == GivenUp("nobody foresaw it")
    assert set(drain(queue)) == {1, 2} - set(numbers([first]))
    assert [letter.reason for letter in queue.list()] == ["nobody foresaw it"]


def test_keeps_what_is_held_when_reopened(rig: Any) -> None:
    """A worker's message outlives its client, and comes again when its lease ends."""
    first = rig.queue(visibility=2 * HOLD)
    first.publish([message(1, "held"), message(2, "free")])
    [taken] = first.receive(1, wait=NOW)
    first.close()
    second = rig.queue(visibility=2 * HOLD)

    assert sorted(numbers([taken]) + drain(second)) == [1, 2]
    rig.pass_time(2 * HOLD + 1)
    [again] = second.receive(1, wait=NOW)
    assert again.id == taken.id


def test_what_a_killed_worker_held_is_delivered_again(rig: Any, other_process: Any) -> None:
    """After kill -9 of a worker its messages come back when their time is up."""
    queue = rig.queue(visibility=2 * HOLD)
    queue.publish([message(number) for number in range(3)])
    worker = other_process("take_and_hang", 2 * HOLD)
    began = rig.now()
    worker.stdin.write("go\n")
    worker.stdin.flush()
    while worker.stdout.readline() != "taken\n":
        pass
    worker.kill()
    worker.wait()
    while not (found := queue.receive(10, wait=NOW)):
        rig.pass_time(0.5)

    assert rig.now() - began >= rig.span(2 * HOLD)
    for delivery in found:
        queue.settle(delivery, Done())
    assert sorted(numbers(found) + drain(queue)) == [0, 1, 2]


def test_waits_for_the_first_message(rig: Any, queue: Any) -> None:
    """A receive that waits returns soon after a message is published through another client."""
    other = rig.queue()
    began = time.monotonic()
    threading.Timer(0.2, other.publish, [[message(1)]]).start()
    deliveries = queue.receive(10, wait=timedelta(seconds=20))
    took = time.monotonic() - began

    assert numbers(deliveries) == [1]
    assert 0.15 < took < 10


def test_waits_no_longer_than_asked(queue: Any) -> None:
    """Without a message a receive returns nothing when its wait is over."""
    began = time.monotonic()
    assert queue.receive(10, wait=timedelta(seconds=0.3)) == []

    assert 0.29 < time.monotonic() - began < 10


@pytest.mark.courtesy(COUNTS)
def test_counts_the_attempts(rig: Any, brief: Any) -> None:
    """A message that was given back comes as its next attempt; silence counts if it is known."""
    brief.publish([message(1)])
    [first] = brief.receive(1, wait=NOW)
    rig.pass_time(LATE)
    [second] = brief.receive(1, wait=NOW)
    brief.settle(second, Again(NOW, "busy"))
    [third] = brief.receive(1, wait=NOW)

    assert first.attempt == 1
    assert second.attempt in (1, 2)
    assert third.attempt == second.attempt + 1


@pytest.mark.courtesy(COUNTS)
def test_the_last_attempt_is_reported_as_dead_lettered(queue: Any) -> None:
    """Settling says `GivenUp` where `Again` was the last attempt, and the next one comes."""
    queue.publish([message(1)])
    assert fail(queue, 3) == [True, True, False]
    queue.publish([message(2)])

    assert drain(queue) == [2]
    assert [(letter.attempts, letter.reason) for letter in queue.list()] == [(3, "no luck")]


@pytest.mark.courtesy(ORDER, COUNTS)
def test_a_message_that_kills_its_workers_dies_in_the_end(rig: Any, brief: Any) -> None:
    """Deliveries nobody reports on count as attempts; those behind do not die with it."""
    brief.publish([message(1), message(2), message(3)])
    for _ in range(3):
        assert numbers(brief.receive(10, wait=NOW))[0] == 1
        rig.pass_time(LATE)

    assert drain(brief) == [2, 3]
    [letter] = brief.list()
    assert (letter.message.body, letter.attempts) == ({"n": 1}, 3)
    assert letter.reason


@pytest.mark.courtesy(PAUSES)
def test_retry_delivers_again_after_its_delay(rig: Any, queue: Any) -> None:
    """A message given back comes after its delay, not before, as it was."""
    queue.publish([message(1)])
    [first] = queue.receive(1, wait=NOW)
    began = rig.now()
    again = Again(rig.span(4), "busy")
    assert queue.settle(first, again) == again
    while not (found := queue.receive(1, wait=NOW)):
        rig.pass_time(0.5)

    assert rig.now() - began >= rig.span(4)
    assert found[0].message == message(1)


@pytest.mark.courtesy(ORDER)
def test_groups_do_not_wait_for_each_other(queue: Any) -> None:
    """While one group is held, the others are delivered."""
    queue.publish([message(1, "a"), message(2, "a"), message(3, "b"), message(4, "c")])
    [first] = queue.receive(1, wait=NOW)

    assert sorted([*numbers([first]), *drain(queue)]) == [1, 3, 4]


@pytest.mark.courtesy(ORDER)
def test_delivers_one_batch_of_a_group_at_a_time(queue: Any) -> None:
    """The rest of a group waits until all of the batch in flight is finished."""
    queue.publish([message(n) for n in range(4)])
    batch = queue.receive(2, wait=NOW)
    assert numbers(batch) == list(range(len(batch)))

    for delivery in batch:
        assert queue.receive(10, wait=NOW) == []
        queue.settle(delivery, Done())

    assert drain(queue) == list(range(len(batch), 4))


@pytest.mark.courtesy(ORDER)
def test_a_group_is_held_with_its_first(rig: Any, brief: Any) -> None:
    """What is behind a message that is held, or held for longer, waits, and comes after it."""
    brief.publish([message(1), message(2)])
    began = rig.now()
    [first] = brief.receive(1, wait=NOW)
    rig.pass_time(1)
    assert brief.extend(first)
    while not (found := brief.receive(1, wait=NOW)):
        rig.pass_time(0.5)

    assert rig.now() - began >= rig.span(HOLD + 1)
    assert numbers(found) == [1]


@pytest.mark.courtesy(ORDER, PAUSES)
def test_those_behind_wait_for_the_retry_of_the_first(rig: Any, queue: Any) -> None:
    """While the first of a group waits for its retry, the group is silent, and others are not."""
    queue.publish([message(1), message(2), message(3, "other")])
    [first] = queue.receive(1, wait=NOW)
    assert numbers([first]) == [1]
    began = rig.now()
    queue.settle(first, Again(rig.span(HOLD), "not yet"))

    assert numbers(queue.receive(10, wait=NOW)) == [3]

    while not (found := queue.receive(1, wait=NOW)):
        rig.pass_time(0.5)
    assert rig.now() - began >= rig.span(HOLD)
    queue.settle(found[0], Done())
    assert numbers(found) + drain(queue) == [1, 2]


@pytest.mark.courtesy(ORDER)
def test_a_group_waits_for_the_rest_of_a_batch_after_a_retry(queue: Any) -> None:
    """Given back without delay, a message still waits for those taken with it, and comes first."""
    queue.publish([message(n) for n in range(3)])
    batch = queue.receive(2, wait=NOW)
    for delivery in batch:
        assert queue.receive(10, wait=NOW) == []
        assert queue.settle(delivery, Again(NOW, "")) == Again(NOW, "")

    assert drain(queue) == [0, 1, 2]


@pytest.mark.courtesy(ORDER)
def test_waits_for_a_group_to_be_released(queue: Any) -> None:
    """A receive that waits returns the next of a group once the first is done."""
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)
    threading.Timer(0.2, queue.settle, [first, Done()]).start()

    assert numbers(queue.receive(1, wait=timedelta(seconds=20))) == [2]


@pytest.mark.courtesy(ORDER)
def test_what_a_killed_worker_held_comes_in_order(rig: Any, other_process: Any) -> None:
    """After kill -9 of a worker the group begins again with its first message."""
    queue = rig.queue(visibility=HOLD)
    queue.publish([message(number) for number in range(3)])
    worker = other_process("take_and_hang", HOLD)
    worker.stdin.write("go\n")
    worker.stdin.flush()
    while worker.stdout.readline() != "taken\n":
        pass
    worker.kill()
    worker.wait()
    rig.pass_time(LATE)

    assert drain(queue) == [0, 1, 2]


@pytest.mark.courtesy(SHARES)
def test_shares_take_turns(queue: Any) -> None:
    """Who has one message waits for no more than one of each other, however much those have."""
    for name in ("flood", "tide"):
        queue.publish([message(n, f"{name} {n}", name) for n in range(200)])
    came = [queue.receive(1, wait=NOW)[0] for _ in range(10)]
    queue.publish([message(1000, "late", "late")])
    came += [queue.receive(1, wait=NOW)[0] for _ in range(3)]

    assert 1000 in numbers(came)
    assert sorted(each.message.share for each in came) == ["flood"] * 6 + ["late"] + ["tide"] * 6


@pytest.mark.courtesy(SHARES)
def test_a_share_that_begins_again_waits_for_the_others(queue: Any) -> None:
    """Who empties its share and comes again gets no more turns than who has much to do."""
    queue.publish([message(n, f"much {n}", "much") for n in range(20)])
    came = []
    for number in range(10):
        queue.publish([message(number, "little", "little")])
        for _ in range(2):
            [delivery] = queue.receive(1, wait=NOW)
            queue.settle(delivery, Done())
            came.append(delivery.message.share)

    assert came.count("much") == came.count("little") == 10


@pytest.mark.courtesy(SHARES)
def test_a_group_goes_with_its_newest_message(queue: Any) -> None:
    """What waits in a long line is taken along by one of its group that comes in a short one."""
    queue.publish([message(n, f"swept {n}", "swept") for n in range(50)])
    queue.publish([message(100, "swept 49", "rung")])
    came = [queue.receive(1, wait=NOW)[0] for _ in range(2)]

    assert 49 in numbers(came)


@pytest.mark.courtesy(ORDER, ONCE)
def test_many_workers_share_the_work_in_order(queue: Any) -> None:
    """Of many threads each message meets one, no group meets two at a time, and order is kept."""
    groups = [f"group {n}" for n in range(7)]
    for number in range(350):
        queue.publish([Message({"n": number}, groups[number % 7])])
    seen: dict[str, list[int]] = defaultdict(list)
    busy: set[str] = set()
    overlaps: list[str] = []

    def work() -> None:
        while deliveries := queue.receive(3, wait=timedelta(seconds=0.5)):
            mine = {delivery.message.group for delivery in deliveries}
            overlaps.extend(busy & mine)
            busy.update(mine)
            for delivery in deliveries:
                seen[delivery.message.group] += numbers([delivery])
            busy.difference_update(mine)
            for delivery in deliveries:
                queue.settle(delivery, Done())

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert overlaps == []
    assert seen == {group: list(range(n, 350, 7)) for n, group in enumerate(groups)}
