"""How many may be here at once: connections by where they come from, requests by who sends them.

Nobody is refused for what others do. When there are too many connections, those go first that
have proved nothing yet: the oldest of the address that has the most of them, then those that have
said nothing for longest. A sender's requests wait for each other, not for those of others.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

CONNECTIONS = 2_000
"""How many connections there are at most, where the process may open enough files."""

UNPROVEN = 250
"""How many connections of one address may be waiting to prove who they are."""

AT_ONCE = 8
"""How many requests of one sender are read and worked on at once; others wait."""


class Guest(Protocol):
    """A connection, from when it is accepted."""

    peer: str

    def drop(self) -> None:
        """End it at once."""
        ...

    def stop(self) -> None:
        """End it, after the request that is under way if there is one."""
        ...


class Crowd:
    """All connections; for one thread only."""

    def __init__(self, most: int = CONNECTIONS) -> None:
        self._most = most
        self._unproven: dict[str, OrderedDict[Guest, None]] = {}
        # Those that proved who they are, the longest silent first.
        self._proven: OrderedDict[Guest, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._proven) + sum(map(len, self._unproven.values()))

    def enter(self, guest: Guest) -> None:
        """Count a connection, and make room for it."""
        waiting = self._unproven.get(guest.peer, ())
        if len(waiting) >= UNPROVEN:
            self._drop(next(iter(waiting)))
        elif len(self) >= self._most:
            self._drop(self._least())
        self._unproven.setdefault(guest.peer, OrderedDict())[guest] = None

    def proved(self, guest: Guest) -> None:
        """Note that a connection is a sender's that is known, and has just spoken."""
        if guest in self._proven:
            self._proven.move_to_end(guest)
        elif guest in self._unproven.get(guest.peer, ()):
            self.leave(guest)
            self._proven[guest] = None

    def leave(self, guest: Guest) -> None:
        """Count a connection no more; a second time is fine."""
        self._proven.pop(guest, None)
        waiting = self._unproven.get(guest.peer)
        if waiting is not None:
            waiting.pop(guest, None)
            if not waiting:
                del self._unproven[guest.peer]

    def everybody(self) -> list[Guest]:
        """Return all connections."""
        return [*self._proven, *(each for some in self._unproven.values() for each in some)]

    def _least(self) -> Guest:
        if self._unproven:
            most = max(self._unproven, key=lambda peer: len(self._unproven[peer]))
            return next(iter(self._unproven[most]))
        return next(iter(self._proven))

    def _drop(self, guest: Guest) -> None:
        self.leave(guest)
        guest.drop()


class Turns:
    """Requests by sender; shared between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: dict[str, int] = {}
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def take(self, sender: str, called: Callable[[], None] | None = None) -> bool:
        """Take a turn at once, or else have `called` called when it comes; say if it was taken."""
        with self._lock:
            if self._busy.get(sender, 0) < AT_ONCE:
                self._busy[sender] = self._busy.get(sender, 0) + 1
                return True
            if called is not None:
                self._waiting.setdefault(sender, deque()).append(called)
            return False

    def give_up(self, sender: str, called: Callable[[], None]) -> bool:
        """Wait no more; say False where the turn has come already."""
        with self._lock:
            waiting = self._waiting.get(sender)
            if waiting is None or called not in waiting:
                return False
            waiting.remove(called)
            if not waiting:
                del self._waiting[sender]
            return True

    def end(self, sender: str) -> None:
        """Give a turn back: to who waits longest for one of this sender's."""
        with self._lock:
            waiting = self._waiting.get(sender)
            called = waiting.popleft() if waiting else None
            if not waiting:
                self._waiting.pop(sender, None)
            if called is None:
                self._busy[sender] -= 1
                if not self._busy[sender]:
                    del self._busy[sender]
        if called is not None:
            called()
