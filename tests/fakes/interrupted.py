"""A store at one of whose calls somebody else comes first, and does all that he is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bellhop.state.records import Records

_CALLS = frozenset({"get", "put", "delete", "query"})


class Interrupted:
    """Pass calls on to a store; before the one of a number, something else is done."""

    def __init__(self, store: Any, number: int, act: Callable[[], object]) -> None:
        self._store = store
        self._left = number
        self._act = act
        self.met = False

    def __getattr__(self, name: str) -> Any:
        if name in _CALLS and not self.met:
            self.met = self._left == 0
            self._left -= 1
            if self.met:
                self._act()
        return getattr(self._store, name)


@contextmanager
def interrupted(records: Records, number: int, act: Callable[[], object]) -> Iterator[Interrupted]:
    """Have something else done before a call of the block, counted from 0."""
    versioned: Any = records.store
    real = versioned._store
    versioned._store = found = Interrupted(real, number, act)
    try:
        yield found
    finally:
        versioned._store = real
