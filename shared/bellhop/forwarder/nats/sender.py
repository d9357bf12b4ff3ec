"""The courier: CloudEvents of NATS go to ingest, and only then are they let go of.

Events of JetStream are put here by who holds them; those on the shelf are fetched from it, some at
a time, so that neither keeps the other from being sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.errors import BellhopError
from bellhop.forwarder.batch_sender import BatchSender
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import Answer, IngestClient
from bellhop.forwarder.nats.message_store import MessageStore
from bellhop.forwarder.outbox import Item, Outbox
from bellhop.logs import Log

SOME = 100
"""Events of the shelf that are on their way at once."""

Settled = Callable[[bool], None]
"""What is called once an event is done: taken by ingest, or not and never to be."""


class MessageSender:
    """One thread that sends."""

    def __init__(self, uplink: IngestClient, shelf: MessageStore, counts: Counts, log: Log) -> None:
        self._shelf = shelf
        self._counts = counts
        self._log = log
        self._outbox = Outbox()
        self._waiting: dict[ObjectKey, Settled] = {}
        self._number = 0
        # How far the shelf was fetched, and how many of its events are on their way.
        self._fetched = 0
        self._away = 0
        self._batches = BatchSender(uplink, self._outbox, self._settle, counts, log)
        self._thread = threading.Thread(target=self._work, name="courier", daemon=True)

    def start(self) -> None:
        """Begin to send; it ends once it is closed."""
        self._thread.start()

    def alive(self) -> bool:
        """Say if it still works."""
        return self._thread.is_alive()

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        self._batches.nudge()

    def wake(self) -> None:
        """Have the shelf looked at."""
        self._outbox.wake()

    def has_room(self) -> bool:
        """Say whether more may be put here."""
        return self._outbox.has_room()

    def put(self, subject: str, body: bytes, settled: Settled) -> None:
        """Have an event sent, and be told what became of it; by another thread."""
        self._number += 1
        key = ObjectKey(CLOUD_EVENT, subject, f"held-{self._number}")
        self._waiting[key] = settled
        self._outbox.put(Item(key, 0, datetime.now(UTC).isoformat(), _body(body)))

    def close(self, seconds: float) -> None:
        """End after the request that is under way, which may take as long as given."""
        self._outbox.close()
        self._batches.end()
        self._thread.join(seconds)

    def _work(self) -> None:
        while self._outbox.is_open:
            batch: list[Item] = []
            try:
                self._fetch()
                batch = self._outbox.take()
                if batch:
                    self._batches.send(batch)
            except Exception as error:  # noqa: BLE001 - nothing may end the only courier
                self._log.error("Failed to send CloudEvents", error)
                self._batches.fail(batch, Answer(0, "internal"))

    def _fetch(self) -> None:
        """Take from the shelf what may be on its way."""
        if self._fetched >= self._shelf.newest or self._away >= SOME:
            return
        for kept in self._shelf.after(self._fetched, SOME - self._away):
            key = ObjectKey(CLOUD_EVENT, kept.subject, f"kept-{kept.number}")
            self._outbox.put(Item(key, kept.number, kept.came, _body(kept.body)))
            self._fetched = kept.number
            self._away += 1

    def _settle(self, items: Sequence[Item], taken: bool) -> None:  # noqa: FBT001 - BatchSender calls it
        if taken:
            self._counts.add("batches")
        self._counts.add("events" if taken else "events_dropped", len(items))
        self._outbox.settle(items)
        shelved = [item for item in items if item.serial]
        self._away -= len(shelved)
        # A full disk keeps them there: they are sent again by the next process, which is harmless.
        with suppress(BellhopError):
            self._shelf.forget(item.serial for item in shelved)
        for item in items:
            if settled := self._waiting.pop(item.key, None):
                settled(taken)


def _body(event: bytes) -> bytes:
    return b'{"event":%s}' % event
