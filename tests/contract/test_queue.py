"""What every queue keeps to: the sentences of bellhop.ports.queue, one by one.

test_queue_model.py compares long random histories with a model.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from bellhop.errors import InvalidError, MissingError, TooLargeError
from bellhop.ports.queue import (
    MESSAGE_LIMIT,
    Again,
    DeadLetter,
    Delivery,
    Done,
    GivenUp,
    Message,
)

NOW = timedelta(0)
SECOND = timedelta(seconds=1)


@pytest.fixture
def queue(rig: Any) -> Any:
    return rig.queue()


def message(number: int, group: str = "g") -> Message:
    return Message({"n": number}, group)


def numbers(deliveries: Iterable[Delivery | DeadLetter]) -> list[int]:
    return [delivery.message.body["n"] for delivery in deliveries]


def drain(queue: Any) -> list[int]:
    """Finish all that is available, one at a time; return it in order."""
    seen = []
    while deliveries := queue.receive(1, wait=NOW):
        seen += numbers(deliveries)
        queue.settle(deliveries[0], Done())
    return seen


def fail(queue: Any, times: int, reason: str = "no luck") -> Sequence[bool]:
    """Take the first message and give it back, again and again; say each time if it lives on."""
    return [
        isinstance(queue.settle(queue.receive(1, wait=NOW)[0], Again(NOW, reason)), Again)
        for _ in range(times)
    ]


def test_delivers_body_and_group_as_published(queue: Any) -> None:
    """A delivery has the message's JSON and group, a receipt, and attempt 1."""
    body = {"object": "v1/Service/ns/ä😀", "n": 2**53, "deep": {"list": [1, None, True, 0.5]}}
    queue.publish([Message(body, "cluster/ns/one two")])

    [delivery] = queue.receive(10, wait=NOW)
    assert delivery.message.body == body
    assert delivery.message.group == "cluster/ns/one two"
    assert delivery.attempt == 1
    assert delivery.id
    assert delivery.receipt


def test_publishing_nothing_is_fine(queue: Any) -> None:
    """An empty batch adds nothing."""
    queue.publish([])

    assert queue.receive(10, wait=NOW) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({"at": object()}, InvalidError, id="not JSON"),
        pytest.param({"at": float("nan")}, InvalidError, id="not a number"),
        pytest.param({"text": "x" * 2_000_000}, TooLargeError, id="too large"),
    ],
)
def test_refuses_what_is_no_message(queue: Any, body: Any, error: type[Exception]) -> None:
    """A body that no queue can carry is refused, and never delivered."""
    with pytest.raises(error):
        queue.publish([Message(body, "g")])

    assert queue.receive(10, wait=NOW) == []


@pytest.mark.parametrize(
    "group",
    ["", "x" * 129, "tab\t", "schön"],
    ids=["empty", "too long", "unprintable", "not ASCII"],
)
def test_refuses_groups_that_a_cloud_would_not_take(queue: Any, group: str) -> None:
    """A group's name has 1 to 128 printable ASCII characters everywhere."""
    with pytest.raises(InvalidError):
        queue.publish([message(1, group)])


def test_takes_a_group_of_the_full_length(queue: Any) -> None:
    """128 characters of any printable ASCII are a group."""
    group = "".join(map(chr, range(33, 127))) + "x" * 34
    queue.publish([message(1, group)])

    assert drain(queue) == [1]


def test_publishes_more_than_a_cloud_takes_at_once(queue: Any) -> None:
    """However many messages are published in one call, all come."""
    queue.publish([message(n, f"group {n % 3}") for n in range(65)])

    assert sorted(drain(queue)) == list(range(65))


def test_delivers_equal_bodies_as_often_as_they_were_published(queue: Any) -> None:
    """Two equal messages are two: the second may have been published after the first was read."""
    queue.publish([message(1), message(1)])
    queue.publish([message(1)])

    assert drain(queue) == [1, 1, 1]


def test_gives_up_at_once_when_told_to(queue: Any) -> None:
    """`GivenUp` makes a dead letter of a first attempt."""
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)

    assert queue.settle(first, GivenUp("nobody foresaw it")) == GivenUp("nobody foresaw it")
    assert drain(queue) == [2]
    assert [letter.reason for letter in queue.list()] == ["nobody foresaw it"]


def test_holds_a_message_for_longer_when_asked(rig: Any) -> None:
    """Extended, a message and its group stay with their worker; after its time it is too late."""
    queue = rig.queue(visibility=10 * SECOND)
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)
    for _ in range(3):
        rig.pass_time(8 * SECOND)
        assert queue.extend(first)
        assert queue.receive(10, wait=NOW) == []
    rig.pass_time(11 * SECOND)

    assert not queue.extend(first)
    assert numbers(queue.receive(1, wait=NOW)) == [1]


def test_takes_a_message_of_the_full_size(queue: Any) -> None:
    """A body that nearly fills the limit comes through."""
    body = {"text": "x" * (MESSAGE_LIMIT - 1000)}
    queue.publish([Message(body, "g")])

    assert queue.receive(1, wait=NOW)[0].message.body == body


def test_keeps_the_order_of_a_group(queue: Any) -> None:
    """Messages of a group come in the order they were published, batch after batch."""
    queue.publish([message(n) for n in range(3)])
    queue.publish([message(3)])
    queue.publish([message(n) for n in range(4, 7)])

    assert drain(queue) == list(range(7))


def test_takes_no_more_than_its_limit(queue: Any) -> None:
    """A limit is kept, within a group and over several; none at all takes nothing."""
    queue.publish([message(n) for n in range(5)] + [message(9, "h"), message(8, "i")])

    assert queue.receive(0, wait=NOW) == []
    assert len(queue.receive(2, wait=NOW)) <= 2
    assert len(queue.receive(1, wait=NOW)) == 1


def test_groups_do_not_wait_for_each_other(queue: Any) -> None:
    """While one group is held, the others are delivered."""
    queue.publish([message(1, "a"), message(2, "a"), message(3, "b"), message(4, "c")])
    [first] = queue.receive(1, wait=NOW)

    assert sorted([*numbers([first]), *drain(queue)]) == [1, 3, 4]


def test_delivers_one_batch_of_a_group_at_a_time(queue: Any) -> None:
    """The rest of a group waits until all of the batch in a worker's hands is finished."""
    queue.publish([message(n) for n in range(4)])
    batch = queue.receive(2, wait=NOW)
    assert numbers(batch) == list(range(len(batch)))

    for delivery in batch:
        assert queue.receive(10, wait=NOW) == []
        queue.settle(delivery, Done())

    assert drain(queue) == list(range(len(batch), 4))


def test_those_behind_wait_for_the_retry_of_the_first(queue: Any, rig: Any) -> None:
    """While the first of a group waits for its retry, the group is silent, and others are not."""
    queue.publish([message(1), message(2), message(3, "other")])
    taken = {d.message.body["n"]: d for d in queue.receive(1, wait=NOW)}
    assert queue.settle(taken[1], Again(5 * SECOND, "not yet")) == Again(5 * SECOND, "not yet")

    assert drain(queue) == [3]

    rig.pass_time(6 * SECOND)

    assert drain(queue) == [1, 2]


def test_a_group_waits_for_the_rest_of_a_batch_after_a_retry(queue: Any, rig: Any) -> None:
    """Given back without delay, a message still waits for those taken with it, and comes first."""
    queue.publish([message(n) for n in range(3)])
    batch = queue.receive(2, wait=NOW)
    for delivery in batch:
        assert queue.receive(10, wait=NOW) == []
        assert queue.settle(delivery, Again(NOW, "")) == Again(NOW, "")
    rig.pass_time(SECOND)

    assert drain(queue) == [0, 1, 2]


def test_hides_a_message_until_its_visibility_has_passed(rig: Any) -> None:
    """What a worker neither finishes nor gives back is delivered again, as a further attempt."""
    queue = rig.queue(visibility=10 * SECOND)
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)
    rig.pass_time(9 * SECOND)
    assert queue.receive(10, wait=NOW) == []
    rig.pass_time(2 * SECOND)
    [second] = queue.receive(1, wait=NOW)

    assert numbers([first, second]) == [1, 1]
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.id == second.id
    assert first.receipt != second.receipt


def test_done_removes_a_message_for_good(rig: Any) -> None:
    """A finished message does not come back, whatever time passes."""
    queue = rig.queue(visibility=10 * SECOND)
    queue.publish([message(1)])
    queue.settle(queue.receive(1, wait=NOW)[0], Done())
    rig.pass_time(60 * SECOND)

    assert queue.receive(1, wait=NOW) == []
    assert queue.list() == []


def test_done_ignores_an_expired_receipt(rig: Any) -> None:
    """A worker that was too slow does not finish the delivery of the one after it."""
    queue = rig.queue(visibility=10 * SECOND)
    queue.publish([message(1)])
    [slow] = queue.receive(1, wait=NOW)
    rig.pass_time(11 * SECOND)
    queue.settle(slow, Done())
    [second] = queue.receive(1, wait=NOW)
    queue.settle(slow, Done())
    rig.pass_time(11 * SECOND)
    [third] = queue.receive(1, wait=NOW)

    assert [d.attempt for d in (slow, second, third)] == [1, 2, 3]


def test_done_twice_is_fine(queue: Any) -> None:
    """Finishing the same delivery again changes nothing."""
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)
    queue.settle(first, Done())
    queue.settle(first, Done())

    assert drain(queue) == [2]


def test_retry_ignores_an_expired_receipt(rig: Any) -> None:
    """A late retry neither delays nor frees what another worker has in hand."""
    queue = rig.queue(visibility=10 * SECOND)
    queue.publish([message(1)])
    [slow] = queue.receive(1, wait=NOW)
    rig.pass_time(11 * SECOND)
    [second] = queue.receive(1, wait=NOW)

    assert queue.settle(slow, Again(NOW, "late")) == Done()
    assert queue.receive(1, wait=NOW) == []
    queue.settle(second, Done())
    rig.pass_time(60 * SECOND)
    assert queue.receive(1, wait=NOW) == []


def test_retry_delivers_again_after_its_delay(queue: Any, rig: Any) -> None:
    """A message given back comes after its delay, not before, with the next attempt."""
    queue.publish([message(1)])
    [first] = queue.receive(1, wait=NOW)
    assert queue.settle(first, Again(30 * SECOND, "busy")) == Again(30 * SECOND, "busy")
    rig.pass_time(29 * SECOND)
    assert queue.receive(1, wait=NOW) == []
    rig.pass_time(2 * SECOND)

    [second] = queue.receive(1, wait=NOW)
    assert (second.id, second.attempt) == (first.id, 2)
    assert second.message.body == {"n": 1}


def test_the_last_attempt_ends_as_a_dead_letter(queue: Any, rig: Any) -> None:
    """Retry says False where it was the last attempt, and the dead letter tells why and when."""
    queue.publish([Message({"n": 7}, "group of 7")])
    rig.pass_time(5 * SECOND)

    assert fail(queue, 3, "the cluster 'prod/eu' does not answer") == [True, True, False]
    assert queue.receive(1, wait=NOW) == []
    [letter] = queue.list()
    assert letter.message.body == {"n": 7}
    assert letter.message.group == "group of 7"
    assert letter.attempts == 3
    assert letter.reason == "the cluster 'prod/eu' does not answer"
    assert letter.died_at == rig.clock.now()


def test_a_dead_letter_lets_its_group_go_on(queue: Any) -> None:
    """Once the first of a group is given up, the next one comes."""
    queue.publish([message(1), message(2)])
    fail(queue, 3)

    assert drain(queue) == [2]


def test_a_message_that_kills_its_workers_dies_in_the_end(rig: Any) -> None:
    """Deliveries nobody reports on count as attempts; those behind do not die with it."""
    queue = rig.queue(visibility=10 * SECOND, attempts=3)
    queue.publish([message(1), message(2), message(3)])
    for _ in range(3):
        assert numbers(queue.receive(10, wait=NOW))[0] == 1
        rig.pass_time(11 * SECOND)

    assert drain(queue) == [2, 3]
    [letter] = queue.list()
    assert (letter.message.body, letter.attempts) == ({"n": 1}, 3)
    assert letter.reason


def test_lists_dead_letters_oldest_first_up_to_a_limit(queue: Any, rig: Any) -> None:
    """Dead letters come in the order they died."""
    for number in (3, 1, 2):
        queue.publish([message(number)])
        fail(queue, 3)
        rig.pass_time(SECOND)

    assert numbers(queue.list()) == [3, 1, 2]
    assert numbers(queue.list(limit=2)) == [3, 1]


def test_replays_a_dead_letter_with_its_attempts_forgotten(queue: Any) -> None:
    """A replayed message has all its attempts again and is no dead letter any more."""
    queue.publish([message(1)])
    fail(queue, 3)
    queue.replay(queue.list()[0].id)

    assert queue.list() == []
    [delivery] = queue.receive(1, wait=NOW)
    assert (delivery.attempt, delivery.message) == (1, message(1))
    assert queue.settle(delivery, Again(NOW, "")) == Again(NOW, "")
    assert fail(queue, 2) == [True, False]


@pytest.mark.parametrize("known", ["", "1", "-1", "x", "¹", "9" * 30])
def test_replaying_what_is_not_dead_is_missing(queue: Any, known: str) -> None:
    """An id that names no dead letter is said to be missing, whatever it looks like."""
    queue.publish([message(1)])

    with pytest.raises(MissingError):
        queue.replay(known)

    assert drain(queue) == [1]


def test_replays_a_dead_letter_once(queue: Any) -> None:
    """A second replay of the same id finds nothing."""
    queue.publish([message(1)])
    fail(queue, 3)
    [letter] = queue.list()
    queue.replay(letter.id)

    with pytest.raises(MissingError):
        queue.replay(letter.id)

    assert drain(queue) == [1]


def test_queues_of_other_names_are_other_queues(rig: Any) -> None:
    """Messages, groups and dead letters of one queue are not seen in another."""
    here, there = rig.queue("evaluate"), rig.queue("deploy")
    here.publish([message(1), message(2)])
    there.publish([message(3)])
    fail(here, 3)

    assert there.list() == []
    with pytest.raises(MissingError):
        there.replay(here.list()[0].id)
    assert drain(there) == [3]
    assert drain(here) == [2]


def test_waits_for_the_first_message(rig: Any, queue: Any) -> None:
    """A receive that waits returns soon after a message is published through another client."""
    other = rig.queue()
    threading.Timer(0.2, other.publish, [[message(1)]]).start()
    began = time.monotonic()
    deliveries = queue.receive(10, wait=20 * SECOND)
    took = time.monotonic() - began

    assert numbers(deliveries) == [1]
    assert 0.15 < took < 5


def test_waits_no_longer_than_asked(queue: Any) -> None:
    """Without a message a receive returns nothing when its wait is over."""
    began = time.monotonic()
    assert queue.receive(10, wait=timedelta(seconds=0.3)) == []

    assert 0.29 < time.monotonic() - began < 5


def test_waits_for_a_group_to_be_let_go(queue: Any) -> None:
    """A receive that waits returns the next of a group once the first is done."""
    queue.publish([message(1), message(2)])
    [first] = queue.receive(1, wait=NOW)
    threading.Timer(0.2, queue.settle, [first, Done()]).start()

    assert numbers(queue.receive(1, wait=20 * SECOND)) == [2]


def test_keeps_everything_when_reopened(rig: Any) -> None:
    """Messages, attempts, what is held and dead letters outlive their client."""
    first = rig.queue(visibility=10 * SECOND)
    first.publish([message(1, "dead"), message(2, "held"), message(3, "free")])
    fail(first, 3)
    taken = first.receive(1, wait=NOW)
    first.close()
    second = rig.queue(visibility=10 * SECOND)

    assert numbers(second.list()) == [1]
    assert sorted(numbers(taken) + drain(second)) == [2, 3]
    rig.pass_time(11 * SECOND)
    [again] = second.receive(1, wait=NOW)
    assert (again.id, again.attempt) == (taken[0].id, 2)


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


def test_processes_share_the_work(queue: Any, other_process: Any) -> None:
    """Messages published by one process are each handled once by two others, in order."""
    workers = [other_process("work") for _ in range(2)]
    publisher = other_process("publish", 200, 5)
    assert publisher.wait(30) == 0
    lines = [list(map(int, worker.stdout.read().split())) for worker in workers]

    assert sorted(itertools.chain(*lines)) == list(range(200))
    for line, group in itertools.product(lines, range(5)):
        of_group = [number for number in line if number % 5 == group]
        assert of_group == sorted(of_group)
    assert queue.receive(1, wait=NOW) == []


def test_what_a_killed_worker_held_is_delivered_again(rig: Any, other_process: Any) -> None:
    """After kill -9 of a worker its messages come back when their time is up, in order."""
    queue = rig.queue()
    queue.publish([Message({"number": number}, "g") for number in range(3)])
    worker = other_process("take_and_hang")
    while worker.stdout.readline() != "taken\n":
        pass
    worker.kill()
    worker.wait()
    assert queue.receive(10, wait=NOW) == []
    rig.pass_time(61 * SECOND)
    seen = []
    while deliveries := queue.receive(10, wait=NOW):
        for delivery in deliveries:
            seen.append((delivery.message.body["number"], delivery.attempt))
            queue.settle(delivery, Done())

    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_a_killed_publisher_loses_nothing_that_was_acknowledged(
    rig: Any, other_process: Any
) -> None:
    """After kill -9 every acknowledged batch is there, and no half of one."""
    publisher = other_process("publish_until_killed")
    for _ in range(200):
        publisher.stdout.readline()
    publisher.kill()
    acknowledged = 200 + len(publisher.stdout.read().splitlines())
    queue = rig.queue()
    halves: dict[str, list[int]] = defaultdict(list)
    while deliveries := queue.receive(100, wait=NOW):
        for delivery in deliveries:
            halves[delivery.message.body["half"]].append(delivery.message.body["pair"])
            queue.settle(delivery, Done())

    assert halves["a"] == halves["b"] == list(range(len(halves["a"])))
    assert len(halves["a"]) in (acknowledged, acknowledged + 1)
