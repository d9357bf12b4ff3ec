"""Hands: many items at once, none waits for others' items, and an error ends it in order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bellhop.errors import UnreachableError
from bellhop.state.worker_pool import SEQUENTIAL, WorkerPool

PATIENCE = 30.0


def always() -> bool:
    return True


def named(number: int) -> tuple[int, str]:
    """Return an item and whose thread did it."""
    return number, threading.current_thread().name


def test_alone_all_is_done_in_order_by_who_asks() -> None:
    """Without helpers no other thread sees an item."""
    me = threading.current_thread().name

    assert SEQUENTIAL.each(named, range(9), always) == ([(each, me) for each in range(9)], None)


def test_helpers_do_many_at_once() -> None:
    """After the first item four are in flight at a time; their results are in their order."""
    together = threading.Barrier(4)

    def do(number: int) -> int:
        if number:
            together.wait(PATIENCE)
        return number

    assert WorkerPool(3).each(do, range(9), always) == (list(range(9)), None)


def test_few_items_wake_nobody() -> None:
    """What has three objects is applied by one thread."""
    done, _ = WorkerPool(3).each(named, range(3), always)

    assert {name for _, name in done} == {threading.current_thread().name}


def test_nobody_else_waits_for_a_first_item() -> None:
    """A cluster that never answers keeps one thread, however many objects it is to have."""
    asked: list[str] = []

    def do(number: int) -> int:
        asked.append(named(number)[1])
        raise UnreachableError("cannot apply: no answer")

    done, error = WorkerPool(7).each(do, range(1000), always)

    assert (done, str(error), len(asked)) == ([], "cannot apply: no answer", 1)


def test_an_error_ends_it_after_what_is_in_hand() -> None:
    """Of four in flight one fails: the others' results come back, and the rest is not begun."""
    together, failed = threading.Barrier(4), threading.Event()

    def do(number: int) -> int:
        if 1 <= number <= 4:
            together.wait(PATIENCE)
        if number == 2:
            failed.set()
            raise UnreachableError("cannot apply: no answer")
        if number:
            failed.wait(PATIENCE)
            # The thread that failed notes it in a moment.
            threading.Event().wait(0.05)
        return number

    done, error = WorkerPool(3).each(do, range(100), always)

    assert isinstance(error, UnreachableError)
    assert done == [0, 1, 3, 4]


def test_the_error_of_the_earliest_item_counts() -> None:
    """The order in which two threads finish does not change the result."""
    together = threading.Barrier(4)

    def do(number: int) -> int:
        if number:
            together.wait(PATIENCE)
            raise UnreachableError(f"cannot apply {number}")
        return number

    assert str(WorkerPool(3).each(do, range(100), always)[1]) == "cannot apply 1"


def test_nothing_is_begun_without_reason_to_go_on() -> None:
    """Whoever's turn is over ends with what was done."""
    reasons = iter([True, True, False])

    assert SEQUENTIAL.each(named, range(9), lambda: next(reasons))[0] == [named(0), named(1)]


def test_a_few_items_do_not_wait_behind_many() -> None:
    """While another's thousand hold every helper, ten get on by their own thread."""
    hands, go = WorkerPool(2), threading.Event()
    held = [threading.Event() for _ in range(3)]

    def hang(number: int) -> int:
        if 1 <= number <= 3:
            held[number - 1].set()
        return number if not number or go.wait(PATIENCE) else -1

    with ThreadPoolExecutor(1) as other:
        slow = other.submit(hands.each, hang, range(1000), always)
        assert all(each.wait(PATIENCE) for each in held)
        quick = hands.each(named, range(10), always)[0]
        assert not slow.done()
        go.set()
        done, error = slow.result(PATIENCE)

    assert {name for _, name in quick} == {threading.current_thread().name}
    assert (done, error) == (list(range(1000)), None)


def test_helpers_go_from_one_to_the_other() -> None:
    """The only helper is with one execution, and comes to another before the first has ended."""
    hands, asked, helped = WorkerPool(1), threading.Event(), threading.Event()

    def long(number: int) -> bool:
        return not number or asked.wait(PATIENCE)

    def short(number: int) -> bool:
        asked.set()
        if threading.current_thread().name.startswith("helper"):
            helped.set()
        return not number or helped.wait(PATIENCE)

    with ThreadPoolExecutor(1) as other:
        first = other.submit(hands.each, long, range(5000), always)
        done, _ = hands.each(short, range(10), always)
        assert all(done)
        assert all(first.result(PATIENCE)[0])


@pytest.mark.parametrize("helpers", [0, 3])
def test_no_items_are_no_work(helpers: int) -> None:
    """An empty phase is done."""
    assert WorkerPool(helpers).each(named, [], always) == ([], None)
