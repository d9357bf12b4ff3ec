"""The contract of every queue on dead letters: bellhop.ports.queue.DeadLetters."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.errors import MissingError
from bellhop.ports.queue import Again, Delivery, Done, GivenUp, Message, Result
from tests.contract.courtesies import COUNTS
from tests.contract.inboxes import all_came, bury, message, numbers, serve

PORT = "dead letters"


@pytest.fixture
def queue(rig: Any) -> Any:
    return rig.queue()


def test_a_dead_letter_has_its_message_reason_and_time(rig: Any, queue: Any) -> None:
    """A dead letter has its message, its reason and its time."""
    queue.publish([Message({"n": 7}, "group of 7")])
    rig.pass_time(3)
    began = rig.now()
    bury(rig, queue, "the cluster 'prod/eu' does not answer")

    [letter] = queue.list()
    assert letter.message == Message({"n": 7}, "group of 7")
    assert letter.attempts >= 1
    assert letter.reason == "the cluster 'prod/eu' does not answer"
    assert began - rig.unit <= letter.died_at <= rig.now() + rig.unit


def test_dead_letters_only_the_given_message(rig: Any, queue: Any) -> None:
    """A dead letter leaves the other messages unchanged, those of its group too."""
    queue.publish([message(1), message(2), message(3, "other")])
    seen = []

    def work(delivery: Delivery) -> Result:
        [number] = numbers([delivery])
        seen.append(number)
        return GivenUp("nobody foresaw it") if number == 1 else Done()

    rig.serve(queue, work)

    assert all_came(seen, [1, 2, 3])
    assert numbers(queue.list()) == [1]
    assert serve(rig, queue) == []


def test_lists_dead_letters_oldest_first_up_to_a_limit(rig: Any, queue: Any) -> None:
    """Dead letters come in the order they died."""
    for number in (3, 1, 2):
        queue.publish([message(number)])
        bury(rig, queue)
        rig.pass_time(1)

    assert numbers(queue.list()) == [3, 1, 2]
    assert numbers(queue.list(limit=2)) == [3, 1]


def test_replays_a_dead_letter_once(rig: Any, queue: Any) -> None:
    """A replayed message is delivered and is dead no more; a second replay finds nothing."""
    queue.publish([message(1)])
    bury(rig, queue)
    [letter] = queue.list()
    queue.replay(letter.id)

    assert queue.list() == []
    with pytest.raises(MissingError):
        queue.replay(letter.id)
    assert all_came(numbers(serve(rig, queue)), [1])


def test_drops_a_dead_letter_for_good(rig: Any, queue: Any) -> None:
    """A dropped one is neither listed, nor replayed, nor dropped again; others are."""
    queue.publish([message(1), message(2)])
    bury(rig, queue)
    dropped = next(letter for letter in queue.list() if numbers([letter]) == [1])
    queue.drop(dropped.id)

    assert numbers(queue.list()) == [2]
    for again in (queue.replay, queue.drop):
        with pytest.raises(MissingError):
            again(dropped.id)
    assert serve(rig, queue) == []


@pytest.mark.parametrize("known", ["", "1", "-1", "x", "¹", "9" * 30])
def test_what_is_not_dead_is_missing(rig: Any, queue: Any, known: str) -> None:
    """An id that names no dead letter is said to be missing, whatever it looks like."""
    queue.publish([message(1)])

    for act in (queue.replay, queue.drop):
        with pytest.raises(MissingError):
            act(known)
    assert all_came(numbers(serve(rig, queue)), [1])


def test_dead_letters_of_other_names_are_others(rig: Any) -> None:
    """Neither list nor replay of one queue reaches into another."""
    here, there = rig.queue("evaluate"), rig.queue("deploy")
    here.publish([message(1)])
    bury(rig, here)

    assert there.list() == []
    with pytest.raises(MissingError):
        there.replay(here.list()[0].id)


def test_dead_letters_outlive_their_client(rig: Any) -> None:
    """Another client finds the dead letters of the first one."""
    first = rig.queue()
    first.publish([message(1)])
    bury(rig, first)
    first.close()

    assert numbers(rig.queue().list()) == [1]


@pytest.mark.courtesy(COUNTS)
def test_the_last_attempt_ends_as_a_dead_letter(rig: Any) -> None:
    """Returned as often as permitted, it is dead-lettered with the reason of the last time."""
    queue = rig.queue(attempts=3)
    queue.publish([message(1)])
    for _ in range(5):
        serve(rig, queue, Again(rig.span(0), "the cluster 'prod/eu' does not answer"))

    [letter] = queue.list()
    assert (letter.attempts, letter.reason) == (3, "the cluster 'prod/eu' does not answer")


@pytest.mark.courtesy(COUNTS)
def test_replays_a_dead_letter_with_its_attempts_forgotten(rig: Any) -> None:
    """A replayed message has all its attempts again."""
    queue = rig.queue(attempts=3)
    queue.publish([message(1)])
    bury(rig, queue)
    queue.replay(queue.list()[0].id)
    seen = []

    def work(delivery: Delivery) -> Result:
        seen.append(delivery.attempt)
        return Again(rig.span(0), "") if len(queue.list()) == 0 else Done()

    for _ in range(5):
        rig.serve(queue, work)

    assert set(seen) == {1, 2, 3}
    assert [letter.attempts for letter in queue.list()] == [3]
