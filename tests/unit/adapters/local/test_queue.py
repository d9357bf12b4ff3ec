"""What the SQLite queue does beyond the port: releasing, dropping, notifying, staying fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.database import Database
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.queue_rows import SCHEMA
from bellhop.errors import InvalidError, MissingError
from bellhop.ports.queue import Again, Delivery, Done, GivenUp, Message
from tests.fakes.clock import FakeClock

NOW = timedelta(0)
SECOND = timedelta(seconds=1)

Open = Callable[..., SqliteQueue]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def open_queue(tmp_path: Path, clock: FakeClock) -> Open:
    def opened(name: str = "inbox", **settings: Any) -> SqliteQueue:
        return SqliteQueue(tmp_path / "queue.db", name, **{"clock": clock, **settings})

    return opened


@pytest.fixture
def queue(open_queue: Open) -> SqliteQueue:
    return open_queue()


def numbers(deliveries: Any) -> list[int]:
    return [delivery.message.body["n"] for delivery in deliveries]


def test_releases_what_dead_workers_held(queue: SqliteQueue, open_queue: Open) -> None:
    """After a restart held messages are available at once, each a further attempt."""
    queue.publish([Message({"n": 1}, "a"), Message({"n": 2}, "a"), Message({"n": 3}, "b")])
    taken = queue.receive(10, wait=NOW)
    again = open_queue()
    again.release()
    queue.settle(taken[0], Done())
    seen = []
    while deliveries := again.receive(10, wait=NOW):
        seen += [(*numbers([each]), each.attempt) for each in deliveries]
        for each in deliveries:
            again.settle(each, Done())

    assert sorted(seen) == [(1, 2), (2, 2), (3, 2)]


def test_release_leaves_delays_and_other_queues_unchanged(
    queue: SqliteQueue, open_queue: Open, clock: FakeClock
) -> None:
    """A message that waits for its retry still waits, and another queue's workers live on."""
    other = open_queue("other")
    queue.publish([Message({"n": 1}, "a"), Message({"n": 2}, "a")])
    other.publish([Message({"n": 3}, "a")])
    first, _ = queue.receive(2, wait=NOW)
    other.receive(1, wait=NOW)
    queue.settle(first, Again(10 * SECOND, "not yet"))
    queue.release()

    assert queue.receive(10, wait=NOW) == []
    assert other.receive(10, wait=NOW) == []
    clock.advance(11 * SECOND)
    assert numbers(queue.receive(1, wait=NOW)) == [1]


def test_drops_a_dead_letter(open_queue: Open) -> None:
    """A dropped dead letter is deleted for good and cannot be dropped twice."""
    queue = open_queue(attempts=1)
    queue.publish([Message({"n": 1}, "a")])
    queue.settle(queue.receive(1, wait=NOW)[0], Again(NOW, "no"))
    [letter] = queue.list()
    queue.drop(letter.id)

    assert queue.list() == []
    with pytest.raises(MissingError):
        queue.drop(letter.id)
    assert queue.receive(1, wait=NOW) == []


@pytest.mark.parametrize("groups", [1, 2])
def test_takes_from_no_more_groups_than_set(open_queue: Open, groups: int) -> None:
    """A worker that is to be stuck with one group at most gets messages of one group."""
    queue = open_queue(groups=groups)
    queue.publish([Message({"n": n}, f"group {n % 5}") for n in range(20)])
    deliveries = queue.receive(20, wait=NOW)

    assert len({delivery.message.group for delivery in deliveries}) == groups
    assert len(deliveries) == 4 * groups


def test_several_groups_are_of_one_share(open_queue: Open) -> None:
    """So nobody's single message waits for what was taken of another's many."""
    queue = open_queue(groups=3)
    queue.publish([Message({"n": n}, f"group {n}", "many") for n in range(9)])
    queue.publish([Message({"n": 9}, "single", "other")])

    assert [numbers(queue.receive(9, wait=NOW)) for _ in range(3)] == [[0], [9], [1, 2, 3]]


def test_settles_a_batch_at_once(open_queue: Open, clock: FakeClock) -> None:
    """Each message as it ended, in one transaction; what expired is ignored among them."""
    queue = open_queue(attempts=3, visibility=10 * SECOND)
    queue.publish([Message({"n": 0}, "late", "a")])
    [late] = queue.receive(1, wait=NOW)
    clock.advance(11 * SECOND)
    queue.publish([Message({"n": n}, f"group {n // 2}", "a") for n in range(2, 6)])
    taken = []
    while found := queue.receive(9, wait=NOW):
        taken += found
    assert sorted(numbers(taken)) == [0, 2, 3, 4, 5]
    by = {numbers([each])[0]: each for each in taken}

    became = queue.settle_all(
        [
            (late, Done()),
            (by[2], Done()),
            (by[3], Again(SECOND, "later")),
            (by[4], GivenUp("never")),
            (by[5], Done()),
        ]
    )
    assert became == [Done(), Done(), Again(SECOND, "later"), GivenUp("never"), Done()]
    assert [letter.message.body["n"] for letter in queue.list()] == [4]
    assert queue.receive(9, wait=NOW) == []
    clock.advance(SECOND)
    assert numbers(queue.receive(9, wait=NOW)) == [3]


def test_settles_and_takes_what_comes_next_at_once(open_queue: Open, clock: FakeClock) -> None:
    """What was settled counts: its group goes on, and its fairness key has a free slot."""
    queue = open_queue(per_share=1, groups=1, attempts=3)
    queue.publish([Message({"n": n}, f"group {n // 2}", "a") for n in range(4)])
    queue.publish([Message({"n": 9}, "b", "b")])
    [first, second] = queue.receive(9, wait=NOW)
    assert numbers([first, second]) == [0, 1]

    worked = [(first, Done()), (second, Again(SECOND, "later"))]
    became, taken = queue.exchange(worked, 9)
    assert became == [Done(), Again(SECOND, "later")]
    assert numbers(taken) == [9]

    clock.advance(SECOND)

    became, taken = queue.exchange([(each, Done()) for each in taken], 9)
    assert (became, numbers(taken)) == ([Done()], [2, 3])
    became, taken = queue.exchange([(each, Done()) for each in taken], 9)
    assert (became, numbers(taken)) == ([Done(), Done()], [1])
    assert queue.exchange([(each, Done()) for each in taken], 9) == ([Done()], [])
    assert queue.exchange([], 9) == ([], [])


def test_who_fails_to_take_has_settled_nothing(open_queue: Open) -> None:
    """It is one transaction: nobody is left holding what he was not given."""
    queue = open_queue()
    queue.publish([Message({"n": n}, f"group {n}") for n in range(2)])
    [first] = queue.receive(1, wait=NOW)
    broken = [(first, Done()), (replace(first, receipt="none"), Done())]
    with pytest.raises(InvalidError):
        queue.exchange(broken, 1)

    assert queue.backlog().held == 1
    assert numbers(queue.receive(9, wait=NOW)) == [1]
    assert queue.exchange([(first, Done())], 9) == ([Done()], [])


def test_takes_the_longest_waiting_group_first(queue: SqliteQueue, clock: FakeClock) -> None:
    """Groups come by the age of their first message, so none starves behind a busy one."""
    for number in range(4):
        queue.publish([Message({"n": number}, f"group {number}")])
        clock.advance(SECOND)
    queue.publish([Message({"n": 9}, "group 0")])

    assert numbers(queue.receive(3, wait=NOW)) == [0, 9, 1]


def test_holds_so_many_of_a_share_and_no_more(open_queue: Open, clock: FakeClock) -> None:
    """A share with all its workers busy waits for one of them, and keeps no other waiting."""
    queue = open_queue(per_share=2, groups=1, visibility=10 * SECOND)
    queue.publish([Message({"n": n}, f"a{n}", "a") for n in range(4)])
    queue.publish([Message({"n": 9}, "b", "b")])
    taken = [each for _ in range(5) for each in queue.receive(9, wait=NOW)]
    assert sorted(numbers(taken)) == [0, 1, 9]

    queue.settle(next(each for each in taken if numbers([each]) == [0]), Done())
    assert numbers(queue.receive(9, wait=NOW)) == [2]
    assert queue.receive(9, wait=NOW) == []

    # Nobody came back to say what became of them: they do not count for ever.
    clock.advance(11 * SECOND)
    came = [numbers(queue.receive(9, wait=NOW)) for _ in range(4)]
    assert came == [[9], [3], [1], []]


def test_a_share_begins_with_few_and_widens(open_queue: Open) -> None:
    """Two until one comes back, then twice as many each time, up to the limit: as TCP begins."""
    queue = open_queue(per_share=8, groups=1)
    queue.publish([Message({"n": n}, f"a{n}", "a") for n in range(40)])
    in_hand: list[Delivery] = []
    widths = []
    for _ in range(5):
        while found := queue.receive(1, wait=NOW):
            in_hand += found
        widths.append(len(in_hand))
        queue.settle(in_hand.pop(0), Done())

    assert widths == [2, 4, 8, 8, 8]


def test_a_share_with_all_its_workers_busy_wakes_when_one_is_done(tmp_path: Path) -> None:
    """Who waits for a share reads again when it is released, and does not spin meanwhile."""
    queue = SqliteQueue(tmp_path / "queue.db", "inbox", clock=SystemClock(), per_share=1)
    queue.publish([Message({"n": n}, f"a{n}", "a") for n in range(2)])
    [first] = queue.receive(1, wait=NOW)
    used = time.thread_time()
    assert queue.receive(1, wait=timedelta(seconds=1)) == []
    assert time.thread_time() - used < 0.5

    threading.Timer(0.1, queue.settle, [first, Done()]).start()
    assert numbers(queue.receive(1, wait=timedelta(seconds=20))) == [1]


@pytest.mark.parametrize("receipt", ["", "1", "x.1", "1.x", "1.", "-1.1", "9" * 30 + ".1", "².1"])
def test_refuses_a_receipt_that_is_not_its_own(queue: SqliteQueue, receipt: str) -> None:
    """A receipt of another make is an error, not an expired one."""
    delivery = Delivery(Message({}, "g"), "1", receipt, 1)

    with pytest.raises(InvalidError, match="receipt"):
        queue.settle(delivery, Done())


def test_ids_are_never_used_again(queue: SqliteQueue) -> None:
    """A receipt of a finished message is of no use for a later one."""
    queue.publish([Message({"n": 1}, "g")])
    [old] = queue.receive(1, wait=NOW)
    queue.settle(old, Done())
    queue.publish([Message({"n": 2}, "g")])
    [new] = queue.receive(1, wait=NOW)
    queue.settle(old, Done())

    assert old.id != new.id
    assert queue.receive(1, wait=NOW) == []
    queue.settle(new, Again(NOW, ""))
    assert numbers(queue.receive(1, wait=NOW)) == [2]


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)]


def latencies(receiver: SqliteQueue, publish: Callable[[], None], rounds: int) -> list[float]:
    """Measure how long after `publish` begins a waiting `receive` returns."""
    arrived: list[float] = []

    def work() -> None:
        for _ in range(rounds):
            [delivery] = receiver.receive(1, wait=10 * SECOND)
            arrived.append(time.monotonic())
            receiver.settle(delivery, Done())

    worker = threading.Thread(target=work)
    worker.start()
    measured = []
    for number in range(rounds):
        time.sleep(0.03)
        began = time.monotonic()
        publish()
        while len(arrived) == number:
            time.sleep(0.0005)
        measured.append(arrived[number] - began)
    worker.join()
    return measured


def test_a_message_of_the_same_connection_wakes_at_once(tmp_path: Path) -> None:
    """A publish reaches a waiting worker of this process in far less than a poll."""
    with closing(Database(tmp_path / "queue.db", SCHEMA)) as database:
        receiver, publisher = (SqliteQueue(database, "a", clock=SystemClock()) for _ in range(2))
        message = [Message({"n": 1}, "g")]

        assert percentile(latencies(receiver, lambda: publisher.publish(message), 30), 0.5) < 0.01


def test_a_message_of_another_connection_is_noticed_soon(open_queue: Open) -> None:
    """Only the file says so, as for another process: within a tenth of a second."""
    receiver, publisher = open_queue(), open_queue()
    message = [Message({"n": 1}, "g")]

    assert percentile(latencies(receiver, lambda: publisher.publish(message), 30), 0.5) < 0.1


def test_names_the_queues_that_have_something(tmp_path: Path, clock: FakeClock) -> None:
    """Of those asked for; and says when more is due, in seconds."""
    with closing(Database(tmp_path / "queue.db", SCHEMA)) as database:
        a, b, _ = (
            SqliteQueue(database, name, clock=clock, per_share=1, groups=1) for name in "abc"
        )
        assert a.ready("abc") == ([], None)
        b.publish([Message({"n": n}, f"g{n}") for n in range(2)])
        a.publish([Message({"n": 9}, "g")])
        [late] = a.receive(1, wait=NOW)
        a.settle(late, Again(10 * SECOND, "later"))
        assert a.ready("abc") == (["b"], 10)
        assert a.ready("c") == ([], None)

        [taken] = b.receive(1, wait=NOW)
        assert a.ready("ab") == ([], 10)
        b.settle(taken, Done())
        clock.advance(10 * SECOND)
        assert a.ready("ab") == (["a", "b"], None)


def test_receiving_does_not_slow_down_with_what_waits(queue: SqliteQueue) -> None:
    """With 20,000 messages in 2,000 groups every lookup of a receive goes through an index."""
    steps: list[str] = []
    queue.publish([Message({"n": n}, f"group {n % 2000}") for n in range(20_000)])
    connection = queue._database._session.connection
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    queue.ready(["inbox"])
    deliveries = queue.receive(10, wait=NOW)
    queue.settle(deliveries[0], Done())
    queue.settle(deliveries[1], Again(NOW, ""))
    connection.set_trace_callback(None)
    for statement in statements:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
            steps += [step[3] for step in plan]

    assert len(steps) > 5
    assert [step for step in steps if "SCAN" in step or "TEMP" in step] == []


def test_a_message_that_is_published_survives_a_clock_that_is_set_back(open_queue: Open) -> None:
    """A clock that jumps back delays what was published before, and loses nothing."""
    clock = FakeClock()
    queue = open_queue(clock=clock)
    clock.advance(60 * SECOND)
    queue.publish([Message({"n": 1}, "g")])
    earlier = open_queue(clock=FakeClock())

    assert earlier.receive(1, wait=NOW) == []
    assert numbers(queue.receive(1, wait=NOW)) == [1]
