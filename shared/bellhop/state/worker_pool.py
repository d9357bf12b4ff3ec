"""Helper threads for executions: all of a process share them, and there are only so many.

    the execution   first ─► item ─► item ─► item ─► … ─► waits for the items of helpers
    a helper                  item ─► item ┄┄► another execution's ┄┄► item ─► item

An execution works on its items itself, whatever helpers do: it is never slower than without them,
however much others have to do and however long their clusters take to answer. Helpers come once its
first item is done, so that none waits for a cluster that does not answer from the start. After a
few items they go on to another execution that waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

HELPERS = 16
"""Threads that help in one process: twice as many as come to one execution, which may hang."""

_AT_ONE = 7
"""Helpers of one execution: eight calls at once are what one API server answers fastest."""

_FEW = 3
"""So few items are done before a thread is woken."""

_SLICE = 4
"""Items that a helper does before it looks for another execution that waits."""

T = TypeVar("T")
R = TypeVar("R")


class WorkerPool:
    """The helpers of a process; without any, the caller does all of it in order.

    `at_one` is how many of them help one execution.
    """

    def __init__(self, helpers: int = 0, *, at_one: int = _AT_ONE) -> None:
        self._at_one = at_one
        self._helpers = ThreadPoolExecutor(helpers, "helper") if helpers else None

    def each(
        self, do: Callable[[T], R], items: Sequence[T], go_on: Callable[[], bool]
    ) -> tuple[list[R], Exception | None]:
        """Do something to each item, for as long as there is reason to go on.

        Returns what came of those that were done, in their order, and the error that ended it:
        items in progress then are finished, no other is begun.
        """
        heap = _Heap(do, items, go_on)
        more = heap.one()
        if more and self._helpers and len(items) > _FEW:
            for _ in range(min(self._at_one, len(items) - 1)):
                self._helpers.submit(self._help, heap)
        while more:
            more = heap.one()
        return heap.end()

    def _help(self, heap: _Heap[T, R]) -> None:
        for _ in range(_SLICE):
            if not heap.one():
                return
        assert self._helpers
        self._helpers.submit(self._help, heap)


SEQUENTIAL = WorkerPool()
"""No helpers."""


class _Heap(Generic[T, R]):
    """Items to be done, by any thread that takes one."""

    def __init__(self, do: Callable[[T], R], items: Sequence[T], go_on: Callable[[], bool]) -> None:
        self._do = do
        self._items = items
        self._go_on = go_on
        self._next = 0
        self._in_hand = 0
        self._done: dict[int, R] = {}
        self._errors: dict[int, Exception] = {}
        self._changed = threading.Condition()

    def one(self) -> bool:
        """Do one item; False if none is left to be done."""
        with self._changed:
            number = self._next
            if self._errors or number == len(self._items) or not self._go_on():
                self._next = len(self._items)
                return False
            self._next += 1
            self._in_hand += 1
        try:
            self._done[number] = self._do(self._items[number])
        except Exception as error:  # noqa: BLE001 - it is raised where all come together
            self._errors[number] = error
        finally:
            with self._changed:
                self._in_hand -= 1
                self._changed.notify_all()
        return True

    def end(self) -> tuple[list[R], Exception | None]:
        """Wait for items in progress, and return the results of all."""
        with self._changed:
            self._changed.wait_for(lambda: not self._in_hand)
        error = self._errors[min(self._errors)] if self._errors else None
        return [self._done[number] for number in sorted(self._done)], error
