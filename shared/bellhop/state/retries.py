"""Messages that failed several times: since when each waits, and how often it was begun.

No queue shows that. SQS leaves a message out of its oldest age after three receives, and a message
that is published again for its next attempt begins at zero. A message is recorded by its content,
which all its attempts share.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from msgspec import Struct

from bellhop.ports.clock import Clock
from bellhop.ports.queue import Message, written
from bellhop.ports.store import Store
from bellhop.state.table import Table

FEW = 3
"""Attempts of which nothing is recorded: most failures pass before."""

_READ = 100
"""Messages that are read for the oldest: more of them began to fail together."""

_EXPIRES = timedelta(hours=6)
"""Forgets a message whose end nobody recorded, as where SQS itself dead-letters it."""

_SILENCE = timedelta(days=1)
"""Forgets how often a message was begun: the longest visibility timeout is an hour and a half."""


class Retry(Struct, frozen=True, omit_defaults=True):
    """Since when a message fails, and how many workers began it and reported nothing."""

    since: datetime
    begun: int = 0


class Retries(Table[Retry, str]):
    """Retried messages of all inboxes."""

    kind = Retry
    partition, sort = "retries", "{digest}"

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def expiry(self, record: Retry) -> datetime:
        """Expire later where a message was begun."""
        return self._clock.now() + (_SILENCE if record.begun else _EXPIRES)

    def add(self, message: Message) -> None:
        """Record that a message fails, since it first did; its worker has reported it."""
        digest = _digest(message)
        kept = self.get(digest)
        if kept is None or kept.value.begun:
            self.put(digest, Retry(kept.value.since if kept else self._clock.now()))

    def begin(self, message: Message) -> int:
        """Count that a worker begins a message of which earlier ones reported nothing.

        Return how many did. Two that begin it at once may count as one.
        """
        digest = _digest(message)
        kept = self.get(digest)
        old = kept.value if kept else Retry(self._clock.now())
        self.put(digest, Retry(old.since, old.begun + 1))
        return old.begun + 1

    def remove(self, message: Message) -> None:
        """Record that a message is done or dead-lettered."""
        self.delete(_digest(message))

    def oldest(self) -> datetime | None:
        """Return since when the oldest retried message fails; None if there is none.

        A message that was only begun is none of them: its function's failure is seen by itself.
        """
        retries = map(self.read_item, self.items(limit=_READ))
        return min((each.since for each in retries if not each.begun), default=None)


def _digest(message: Message) -> str:
    return hashlib.sha256(written(message).encode()).hexdigest()[:32]
