"""What every queue keeps to for those who publish, however it delivers: bellhop.ports.queue.Queue.

Deliveries come as `rig.serve` has them come, pulled or pushed. Durations are in the rig's units.
"""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.errors import InvalidError, TooLargeError
from bellhop.ports.queue import MESSAGE_LIMIT, Again, Delivery, Done, Message, Result
from tests.contract.courtesies import ONCE, ORDER, PAUSES
from tests.contract.inboxes import all_came, message, numbers, serve

PORT = "queue"


@pytest.fixture
def queue(rig: Any) -> Any:
    return rig.queue()


def test_delivers_body_and_group_as_published(rig: Any, queue: Any) -> None:
    """A delivery has the message's JSON and group, a receipt, and an attempt."""
    body = {"object": "v1/Service/ns/ä😀", "n": 2**53, "deep": {"list": [1, None, True, 0.5]}}
    queue.publish([Message(body, "cluster/ns/one two")])

    deliveries = serve(rig, queue)

    assert all(delivery.message == Message(body, "cluster/ns/one two") for delivery in deliveries)
    assert deliveries[0].attempt >= 1
    assert deliveries[0].id
    assert deliveries[0].receipt


def test_publishing_nothing_is_fine(rig: Any, queue: Any) -> None:
    """An empty batch adds nothing."""
    queue.publish([])

    assert serve(rig, queue) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({"at": object()}, InvalidError, id="not JSON"),
        pytest.param({"at": float("nan")}, InvalidError, id="not a number"),
        pytest.param({"text": "x" * 2_000_000}, TooLargeError, id="too large"),
    ],
)
def test_refuses_what_is_no_message(
    rig: Any, queue: Any, body: Any, error: type[Exception]
) -> None:
    """A body that no queue can carry is refused, and never delivered."""
    with pytest.raises(error):
        queue.publish([Message(body, "g")])

    assert serve(rig, queue) == []


@pytest.mark.parametrize(
    "group",
    ["", "x" * 129, "tab\t", "schön"],
    ids=["empty", "too long", "unprintable", "not ASCII"],
)
def test_refuses_groups_that_a_cloud_would_not_take(queue: Any, group: str) -> None:
    """A group's name has 1 to 128 printable ASCII characters everywhere."""
    with pytest.raises(InvalidError):
        queue.publish([message(1, group)])


@pytest.mark.parametrize("share", ["x" * 129, "tab\t", "schön"])
def test_refuses_shares_that_a_cloud_would_not_take(rig: Any, queue: Any, share: str) -> None:
    """A share's name has up to 128 printable ASCII characters everywhere, and comes through."""
    with pytest.raises(InvalidError):
        queue.publish([message(1, "g", share)])
    queue.publish([message(2, "g", "fleet/east")])

    assert {delivery.message.share for delivery in serve(rig, queue)} == {"fleet/east"}


def test_takes_a_group_of_the_full_length(rig: Any, queue: Any) -> None:
    """128 characters of any printable ASCII are a group."""
    group = "".join(map(chr, range(33, 127))) + "x" * 34
    queue.publish([message(1, group)])

    assert {delivery.message.group for delivery in serve(rig, queue)} == {group}


def test_takes_a_message_of_the_full_size(rig: Any, queue: Any) -> None:
    """A body that nearly fills the limit comes through."""
    body = {"text": "x" * (MESSAGE_LIMIT - 1000)}
    queue.publish([Message(body, "g")])

    assert serve(rig, queue)[0].message.body == body


def test_publishes_more_than_a_cloud_takes_at_once(rig: Any, queue: Any) -> None:
    """However many messages are published in one call, all come."""
    queue.publish([message(n, f"group {n % 3}") for n in range(65)])

    assert all_came(numbers(serve(rig, queue)), range(65))


def test_delivers_equal_bodies_as_often_as_they_were_published(rig: Any, queue: Any) -> None:
    """Two equal messages are two: the second may have been published after the first was read."""
    queue.publish([message(1), message(1)])
    queue.publish([message(1)])

    assert all_came(numbers(serve(rig, queue)), [1, 1, 1])


def test_delivers_again_what_could_not_be_done(rig: Any, queue: Any) -> None:
    """A message that is given back comes again, whatever the provider makes of its pause."""
    queue.publish([message(1), message(2, "other")])
    seen: list[int] = []

    def work(delivery: Delivery) -> Result:
        [number] = numbers([delivery])
        seen.append(number)
        return Again(rig.span(1), "busy") if seen.count(number) == 1 and number == 1 else Done()

    rig.serve(queue, work)
    rig.pass_time(2)
    rig.serve(queue, work)

    assert set(seen) == {1, 2}
    assert seen.count(1) >= 2


def test_done_removes_a_message_for_good(rig: Any) -> None:
    """A finished message does not come back, whatever time passes."""
    queue = rig.queue(visibility=8)
    queue.publish([message(1)])
    serve(rig, queue)
    rig.pass_time(9)

    assert serve(rig, queue) == []
    assert queue.list() == []


def test_queues_of_other_names_are_other_queues(rig: Any) -> None:
    """Messages of one queue are not seen in another."""
    here, there = rig.queue("evaluate"), rig.queue("deploy")
    here.publish([message(1), message(2)])
    there.publish([message(3)])

    assert all_came(numbers(serve(rig, there)), [3])
    assert all_came(numbers(serve(rig, here)), [1, 2])


def test_messages_outlive_their_publisher(rig: Any) -> None:
    """A published message is there for another client when the first has closed."""
    first = rig.queue()
    first.publish([message(1), message(2)])
    first.close()

    assert all_came(numbers(serve(rig, rig.queue())), [1, 2])


@pytest.mark.courtesy(ORDER, ONCE)
def test_keeps_the_order_of_a_group(rig: Any, queue: Any) -> None:
    """Messages of a group come in the order they were published, batch after batch."""
    queue.publish([message(n) for n in range(3)])
    queue.publish([message(3)])
    queue.publish([message(n) for n in range(4, 7)])

    assert numbers(serve(rig, queue)) == list(range(7))


@pytest.mark.courtesy(PAUSES)
def test_a_pause_is_kept(rig: Any, queue: Any) -> None:
    """A message given back is not delivered before its pause is over."""
    queue.publish([message(1)])
    began = rig.now()
    serve(rig, queue, Again(rig.span(4), "busy"))
    while not serve(rig, queue):
        rig.pass_time(0.5)

    assert rig.now() - began >= rig.span(4)


@pytest.mark.courtesy(ONCE)
def test_delivers_nothing_twice_that_is_finished_in_time(rig: Any, queue: Any) -> None:
    """A message comes once where its worker keeps its time."""
    queue.publish([message(n, f"group {n % 3}") for n in range(65)])

    assert sorted(numbers(serve(rig, queue))) == list(range(65))
