"""Who computes: one thread of the process at a time, for as long as it waits for nobody.

Every statement of SQLite lets go of Python's interpreter. Where several threads want it, another
one takes it, and the first must be woken to go on: an event of a hundred statements is a hundred
handovers, each dearer than a statement. So who works holds a baton, passes it while a cluster is
asked, and the others wait for that rather than for the interpreter.

It is a courtesy and guards nothing: who waits for it too long goes on without. No thread can lock
another one out, whatever it holds meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 0.05
"""Seconds, about ten times as long as most work takes."""


class Baton:
    """Held by one thread at a time, and only while it computes."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._mine = threading.local()

    @property
    def mine(self) -> bool:
        """Say whether this thread holds it."""
        return bool(getattr(self._mine, "held", False))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it, if it can be had soon, until the end of the block."""
        taken = not self.mine and self._take()
        try:
            yield
        finally:
            if taken:
                self._give()

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Let others have it within the block, in which this thread waits for something."""
        given = self.mine
        if given:
            self._give()
        try:
            yield
        finally:
            if given:
                self._take()

    def _take(self) -> bool:
        self._mine.held = self._lock.acquire(timeout=self._patience)
        return self.mine

    def _give(self) -> None:
        if self.mine:
            self._mine.held = False
            self._lock.release()


BATON = Baton()
"""The process's own, as it has one interpreter."""
