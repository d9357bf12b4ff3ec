"""What the objects of one process that use the same file share: a lock, a lookout, and bells.

Two objects may stand for one queue, the one of the stage that publishes and the one of the worker
that receives: they wake each other through a bell, and take turns on the lock rather than in
SQLite, which would let the loser sleep a while.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from weakref import WeakValueDictionary


class Bell:
    """A counter that can be waited for."""

    def __init__(self) -> None:
        self.rung = 0
        self.full: Callable[[], Collection[str]] = tuple
        """The shares that nobody who waits may take from."""
        self._waiting = 0
        self._condition = threading.Condition(threading.Lock())

    def ring(self, count: int) -> None:
        """Wake up to `count` of those that wait."""
        with self._condition:
            self.rung += 1
            self._condition.notify(count)

    def call(self) -> bool:
        """Wake one that waits, without ringing; say whether anybody does."""
        with self._condition:
            self._condition.notify()
            return bool(self._waiting)

    def wait(self, seconds: float, rung: int) -> bool:
        """Wait until it rings or calls; say whether it rang since `rung` was read."""
        with self._condition:
            if self.rung == rung:
                self._waiting += 1
                try:
                    self._condition.wait(seconds)
                finally:
                    self._waiting -= 1
            return self.rung != rung


class Neighbours:
    """The objects of this process that use one file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.lookout = threading.Lock()
        """Held by the one that waits and looks for what other processes wrote."""
        self.poll = 0.02
        """Seconds that the lookout rests between two looks: more, the longer nothing comes."""
        self._bells: dict[str, Bell] = {}

    @classmethod
    def at(cls, path: Path) -> Neighbours:
        """Return those of a file; a forked child starts anew, as its parent may hold the lock."""
        key = (os.getpid(), path.resolve())
        with _registering:
            found = _neighbours.get(key)
            if found is None:
                found = _neighbours[key] = cls()
            return found

    def bell(self, name: str) -> Bell:
        """Return the bell of that name."""
        return self._bells.get(name) or self._bells.setdefault(name, Bell())

    def bells(self) -> list[tuple[str, Bell]]:
        """Return the bells with their names."""
        return list(self._bells.items())

    def relieve(self) -> None:
        """Let somebody else look out: one that waits for any of the bells, if anybody does.

        Whoever is called does not do its own work first, and no others are woken for nothing.
        """
        self.lookout.release()
        any(bell.call() for bell in tuple(self._bells.values()))

    def ring(self, count: int) -> None:
        """Wake up to `count` of those that wait for each of the bells."""
        for bell in tuple(self._bells.values()):
            bell.ring(count)


_neighbours: WeakValueDictionary[tuple[int, Path], Neighbours] = WeakValueDictionary()
_registering = threading.Lock()
