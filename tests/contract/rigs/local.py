"""The embedded mode's adapters: files in a folder, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

from bellhop.adapters.local import secrets
from bellhop.adapters.local.blobs import FileBlobs
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.adapters.local.store import SqliteStore
from tests.fakes.clock import FakeClock

KEY = bytes(range(32))
Client = TypeVar("Client", SqliteStore, SqliteQueue)


class Rig:
    """What a contract test needs of a provider.

    `place` is where everything lies, as text: another process makes its own rig of it. Each call
    of store, queue, secrets or blobs is another client of the same thing.
    """

    secret_limit: ClassVar[int] = secrets.LIMIT

    def __init__(self, place: str) -> None:
        self.place = place
        self.clock = FakeClock()
        self._closers: list[Callable[[], None]] = []

    def store(self) -> SqliteStore:
        return self._opened(SqliteStore(Path(self.place) / "store.db"))

    def queue(
        self,
        name: str = "inbox",
        *,
        visibility: timedelta = timedelta(seconds=60),
        attempts: int = 3,
    ) -> SqliteQueue:
        return self._opened(
            SqliteQueue(
                Path(self.place) / "queue.db",
                name,
                clock=self.clock,
                visibility=visibility,
                attempts=attempts,
            )
        )

    def secrets(self) -> FileSecrets:
        return FileSecrets(Path(self.place) / "secrets", KEY)

    def blobs(self) -> FileBlobs:
        return FileBlobs(Path(self.place) / "blobs")

    def pass_time(self, by: timedelta) -> None:
        """Have time pass, for every client of this rig."""
        self.clock.advance(by)

    def close(self) -> None:
        for close in self._closers:
            close()

    def _opened(self, client: Client) -> Client:
        self._closers.append(client.close)
        return client
