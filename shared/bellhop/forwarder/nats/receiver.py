"""The receiver: stores messages of all servers, and reports those that are lost or malformed.

A message without headers is an event of the JSON format, which is all that Sveltos' agent takes;
with headers it may be in either mode of the binding for NATS:
https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/nats-protocol-binding.md
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct, field

from bellhop.errors import BellhopError, InvalidError
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.nats.sender import MessageSender, MessageStore
from bellhop.logs import Log
from bellhop.rendering.cloud_events import (
    BATCH,
    CHANNEL,
    STRUCTURED,
    SUBSCRIPTION,
    attributes,
    has_cloud_events,
    read,
)


def event(subject: str, asked: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
    """Return the event of a message as JSON.

    `asked` is what was subscribed to, a subject with wildcards or a stream: Sveltos compares an
    EventSource's `subject` with that, so it is sent beside the subject where the two differ.

    Raises:
        InvalidError: it is none.
    """
    given = {name.lower(): value for name, value in (headers or {}).items()}
    media, found_attributes = given.get("content-type", ""), attributes(given)
    if not has_cloud_events(media, found_attributes):
        media, found_attributes = STRUCTURED, {}
    if media.lower().startswith(BATCH):
        raise InvalidError("cannot take a message of NATS: it is a batch, not one event")
    [found] = read(media, found_attributes, body)
    channel = {CHANNEL: subject, **({SUBSCRIPTION: asked} if asked != subject else {})}
    rest = {name: value for name, value in found.content.items() if name != SUBSCRIPTION}
    text = json.dumps({**rest, **channel}, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def covers(pattern: str, subject: str) -> bool:
    """Say if a pattern of NATS names a subject: `*` is one word of it, `>` the rest."""
    asked, given = pattern.split("."), subject.split(".")
    for place, word in enumerate(asked):
        if word == ">":
            return len(given) > place
        if place >= len(given) or word not in {"*", given[place]}:
            return False
    return len(asked) == len(given)


_SAY_SECONDS = 60.0


class LogLimiter:
    """Limits log lines to one a minute, by topic."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def allow(self, topic: str) -> bool:
        """Return whether a line may be written now, and count it."""
        now = time.monotonic()
        if now - self._said.get(topic, float("-inf")) < _SAY_SECONDS:
            return False
        self._said[topic] = now
        return True


class Receiver(Struct, frozen=True):
    """The sender, store and log that all subscribers of a forwarder share."""

    sender: MessageSender
    store: MessageStore
    counts: Counts
    log: Log
    _limiter: LogLimiter = field(default_factory=LogLimiter)

    def keep(
        self, subject: str, asked: str, headers: Mapping[str, str] | None, body: bytes
    ) -> None:
        """Keep what came by core NATS on disk, since it is nowhere else, and have it sent."""
        if self.store.full:
            self.lost(subject, "too many wait for ingest")
            return
        try:
            found = event(subject, asked, headers, body)
        except InvalidError as error:
            self.malformed(subject, error)
            return
        try:
            self.store.put(subject, datetime.now(UTC).isoformat(), found)
        except BellhopError as error:
            self.lost(subject, str(error))
            return
        self.sender.wake()

    def lost(self, subject: str, why: str) -> None:
        """Count what cannot be kept, and say so."""
        self.counts.add("events_dropped")
        self._say("Dropped CloudEvents of NATS", subject, why)

    def malformed(self, subject: str, error: InvalidError) -> None:
        """Count a message that is no CloudEvent, and say so; never what it holds."""
        self.counts.add("events_malformed")
        self._say("Passed over a message of NATS", subject, str(error))

    def _say(self, sentence: str, subject: str, why: str) -> None:
        if self._limiter.allow(sentence):
            self.log.warning(sentence, subject=subject, why=why)
