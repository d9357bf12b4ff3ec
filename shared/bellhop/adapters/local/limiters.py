"""How many may be here at once: connections by their address, requests by their sender.

No client is refused for what others do. Among too many connections, unauthenticated ones are closed
first: the oldest of the address that has the most, then the connection silent for longest.
"""

from __future__ import annotations

import asyncio
from typing import Protocol
from weakref import WeakValueDictionary

CONNECTIONS = 2_000
"""How many connections there are at most, where the process may open enough files."""

UNPROVEN = 250
"""How many connections of one address may be waiting to prove who they are."""

AT_ONCE = 8
"""How many requests of one sender are read and served at once; others wait."""


class Connection(Protocol):
    """A connection, from when it is accepted."""

    peer: str

    def drop(self) -> None:
        """Close it at once."""
        ...


class ConnectionLimiter:
    """All connections of a server, in order of arrival or of the last request."""

    def __init__(self, most: int = CONNECTIONS) -> None:
        self._most = most
        self._unproven: dict[str, dict[Connection, None]] = {}
        self._proven: dict[Connection, None] = {}

    def all(self) -> list[Connection]:
        """Return all connections."""
        return [*self._proven, *(each for peer in self._unproven.values() for each in peer)]

    def enter(self, connection: Connection) -> None:
        """Count a connection, and close another one where there are too many."""
        of_peer = self._unproven.get(connection.peer, {})
        if len(of_peer) >= UNPROVEN:
            self._drop(of_peer)
        elif len(self._proven) + sum(map(len, self._unproven.values())) >= self._most:
            self._drop(max(self._unproven.values(), key=len, default=self._proven))
        self._unproven.setdefault(connection.peer, {})[connection] = None

    def prove(self, connection: Connection) -> None:
        """Note that an authenticated sender has just used a connection."""
        self.leave(connection)
        self._proven[connection] = None

    def leave(self, connection: Connection) -> None:
        """Count a connection no more; a second time is fine."""
        self._proven.pop(connection, None)
        of_peer = self._unproven.get(connection.peer, {})
        of_peer.pop(connection, None)
        if not of_peer:
            self._unproven.pop(connection.peer, None)

    def _drop(self, some: dict[Connection, None]) -> None:
        oldest = next(iter(some))
        self.leave(oldest)
        oldest.drop()


class SenderLimiter:
    """A semaphore for each sender that has requests."""

    def __init__(self) -> None:
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, sender: str) -> asyncio.Semaphore:
        """Return the semaphore of a sender; a request without a sender waits for no other."""
        found = self._semaphores.get(sender) or asyncio.Semaphore(AT_ONCE)
        if sender:
            self._semaphores[sender] = found
        return found
