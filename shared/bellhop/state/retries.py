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

_PARTITION = "retries"
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


class Retries:
    """Retried messages of all inboxes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._table = Table(store, Retry)

    def add(self, message: Message) -> None:
        """Record that a message fails, since it first did; its worker has reported it."""
        now, digest = self._clock.now(), _digest(message)
        kept = self._table.get(_PARTITION, digest)
        if kept is None or kept.value.begun:
            retry = Retry(kept.value.since if kept else now)
            self._table.put(_PARTITION, digest, retry, expires_at=now + _EXPIRES)

    def begin(self, message: Message) -> int:
        """Count that a worker begins a message of which earlier ones reported nothing.

        Return how many did. Two that begin it at once may count as one.
        """
        now, digest = self._clock.now(), _digest(message)
        kept = self._table.get(_PARTITION, digest)
        retry = kept.value if kept else Retry(now)
        begun = Retry(retry.since, retry.begun + 1)
        self._table.put(_PARTITION, digest, begun, expires_at=now + _SILENCE)
        return begun.begun

    def remove(self, message: Message) -> None:
        """Record that a message is done or dead-lettered."""
        self._store.delete(_PARTITION, _digest(message))

    def oldest(self) -> datetime | None:
        """Return since when the oldest retried message fails; None if there is none.

        A message that was only begun is none of them: its function's failure is seen by itself.
        """
        items = self._table.items(_PARTITION, limit=_READ)
        retries = map(self._table.read, (item.value for item in items))
        return min((each.since for each in retries if not each.begun), default=None)


def _digest(message: Message) -> str:
    return hashlib.sha256(written(message).encode()).hexdigest()[:32]
