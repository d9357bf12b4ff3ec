"""Lost writes are tried again, and nothing else is."""

from __future__ import annotations

import pytest

from bellhop.errors import LostWriteError, StaleError
from bellhop.state.concurrency import until_settled, until_written


class Counter:
    """Loses its first writes, and counts all calls."""

    def __init__(self, lost: int, error: type[StaleError] = LostWriteError) -> None:
        self.calls, self._lost, self._error = 0, lost, error

    @until_written("write '{name}'", 3)
    def write(self, name: str) -> str:
        self.calls += 1
        if self.calls <= self._lost:
            raise self._error("cannot write: another writer was quicker")
        return name

    @until_settled("settle '{name}'", 3)
    def settle(self, name: str) -> bool:
        self.calls += 1
        return bool(name) and self.calls > self._lost


def test_a_lost_write_is_tried_again() -> None:
    """The caller gets what the last call returned."""
    counter = Counter(lost=2)
    assert counter.write("a") == "a"
    assert counter.calls == 3


def test_a_writer_that_always_loses_says_what_it_could_not_do() -> None:
    """The error names its argument, whether it was given by name or not."""
    with pytest.raises(StaleError, match="cannot write 'a': other writers keep winning"):
        Counter(lost=3).write(name="a")


def test_what_is_stale_for_another_reason_is_not_tried_again() -> None:
    """A record whose payload is lost would be read eight times in vain."""
    counter = Counter(1, StaleError)
    with pytest.raises(StaleError, match="another writer was quicker"):
        counter.write("a")
    assert counter.calls == 1


def test_several_who_lose_inside_each_other_do_not_multiply() -> None:
    """The error of an inner function that gave up is no lost write of the outer one."""
    inner = Counter(lost=9)

    @until_written("write the outer one", 3)
    def outer() -> None:
        inner.write("a")

    with pytest.raises(StaleError, match="cannot write 'a'"):
        outer()
    assert inner.calls == 3


def test_a_function_is_repeated_until_it_has_settled() -> None:
    """It returns nothing to its caller."""
    counter = Counter(lost=2)
    counter.settle("a")
    assert counter.calls == 3
    with pytest.raises(StaleError, match="cannot settle 'b': what it reads changes all the time"):
        Counter(lost=3).settle("b")
