"""The embedded mode's adapters: files in a folder, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bellhop.adapters.local import secrets
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.adapters.local.store import FileBlobs, SqliteStore
from bellhop.ports.clock import Clock
from bellhop.ports.queue import Delivery, Result
from tests.contract import courtesies
from tests.fakes.clock import FakeClock

KEY = bytes(range(32))
Client = TypeVar("Client", SqliteStore, SqliteQueue)


class Rig:
    """What a contract test needs of a provider.

    `place` is where everything lies, as text: another process makes its own rig of it. Each call
    of store, queue, secrets or blobs is another client of the same thing. Durations of a queue's
    tests are in the rig's `unit`, so that a provider without a clock to move is not waited for
    longer than need be.
    """

    ports: ClassVar[frozenset[str]] = frozenset(
        {"store", "secrets", "blobs", "queue", "consumer", "dead letters"}
    )
    courtesies: ClassVar[frozenset[str]] = courtesies.ALL
    secret_limit: ClassVar[int] = secrets.LIMIT
    unit: ClassVar[timedelta] = timedelta(seconds=1)
    where: ClassVar[str] = "tmp_path"

    def __init__(self, place: str) -> None:
        self.place = place
        self.clock: Clock = FakeClock()
        self._closers: list[Callable[[], None]] = []

    def store(self) -> SqliteStore:
        return self._opened(SqliteStore(Path(self.place) / "store.db"))

    def queue(self, name: str = "inbox", *, visibility: float = 60, attempts: int = 3) -> Any:
        """Open an inbox with all the roles that the provider has; `visibility` in units."""
        return self._queue(name, visibility, attempts)

    def serve(self, queue: Any, work: Callable[[Delivery], Result], *, idle: float = 0) -> None:
        """Have all that is available delivered to `work`, the provider's way.

        Return once nothing has come for `idle` seconds.
        """
        while deliveries := queue.receive(5, wait=timedelta(seconds=idle)):
            for delivery in deliveries:
                queue.settle(delivery, work(delivery))

    def secrets(self) -> FileSecrets:
        return FileSecrets(Path(self.place) / "secrets", KEY)

    def blobs(self) -> FileBlobs:
        return FileBlobs(Path(self.place) / "blobs")

    def now(self) -> datetime:
        """Return what time it is for the provider."""
        return self.clock.now()

    def span(self, units: float) -> timedelta:
        """Return how long so many units are."""
        return units * self.unit

    def pass_time(self, units: float) -> None:
        """Have time pass, for every client of this rig."""
        assert isinstance(self.clock, FakeClock)
        self.clock.advance(self.span(units))

    def close(self) -> None:
        for close in self._closers:
            close()

    def _queue(self, name: str, visibility: float, attempts: int) -> SqliteQueue:
        return self._opened(
            SqliteQueue(
                Path(self.place) / "queue.db",
                name,
                clock=self.clock,
                visibility=self.span(visibility),
                attempts=attempts,
            )
        )

    def _opened(self, client: Client) -> Client:
        self._closers.append(client.close)
        return client
