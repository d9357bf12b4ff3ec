"""Messages of NATS as the CloudEvents that they are, with the subject that they came by.

A message without headers is an event of the JSON format, which is all that Sveltos' agent takes;
with headers it may be in either mode of the binding for NATS:
https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/nats-protocol-binding.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from bellhop.errors import InvalidError
from bellhop.rendering.cloud_events import (
    BATCH,
    CHANNEL,
    STRUCTURED,
    SUBSCRIPTION,
    attributes,
    is_told,
    read,
)


def event(subject: str, asked: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
    """Return the event of a message as JSON.

    `asked` is what was subscribed to, a subject with wildcards or a stream: Sveltos compares an
    EventSource's `subject` with that, so it is told beside the subject where the two differ.

    Raises:
        InvalidError: it is none.
    """
    given = {name.lower(): value for name, value in (headers or {}).items()}
    media, told = given.get("content-type", ""), attributes(given)
    if not is_told(media, told):
        media, told = STRUCTURED, {}
    if media.lower().startswith(BATCH):
        raise InvalidError("cannot take a message of NATS: it is a batch, not one event")
    [found] = read(media, told, body)
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
