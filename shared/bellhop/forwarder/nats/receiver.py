"""The intake: where messages of all servers come in, and what is said of those that do not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, field

from bellhop.errors import BellhopError, InvalidError
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.nats.events import event
from bellhop.forwarder.nats.message_store import MessageStore
from bellhop.forwarder.nats.sender import MessageSender
from bellhop.logs import Log

_SAY_SECONDS = 60.0


class Seldom:
    """What may be said once a minute, by topic."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def may(self, topic: str) -> bool:
        """Say whether it may be said now, and count it as said."""
        now = time.monotonic()
        if now - self._said.get(topic, float("-inf")) < _SAY_SECONDS:
            return False
        self._said[topic] = now
        return True


class Receiver(Struct, frozen=True):
    """What all subscribers of a forwarder share."""

    courier: MessageSender
    shelf: MessageStore
    counts: Counts
    log: Log
    _seldom: Seldom = field(default_factory=Seldom)

    def keep(
        self, subject: str, asked: str, headers: Mapping[str, str] | None, body: bytes
    ) -> None:
        """Keep what came by core NATS on disk, since it is nowhere else, and have it sent."""
        if self.shelf.full:
            self.lost(subject, "too many wait for ingest")
            return
        try:
            found = event(subject, asked, headers, body)
        except InvalidError as error:
            self.malformed(subject, error)
            return
        try:
            self.shelf.put(subject, datetime.now(UTC).isoformat(), found)
        except BellhopError as error:
            self.lost(subject, str(error))
            return
        self.courier.wake()

    def lost(self, subject: str, why: str) -> None:
        """Count what cannot be kept, and say so."""
        self.counts.add("events_dropped")
        self._say("Dropped CloudEvents of NATS", subject, why)

    def malformed(self, subject: str, error: InvalidError) -> None:
        """Count a message that is no CloudEvent, and say so; never what it holds."""
        self.counts.add("events_malformed")
        self._say("Passed over a message of NATS", subject, str(error))

    def _say(self, sentence: str, subject: str, why: str) -> None:
        if self._seldom.may(sentence):
            self.log.warning(sentence, subject=subject, why=why)
