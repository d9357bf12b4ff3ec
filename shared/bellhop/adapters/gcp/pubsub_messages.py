"""Messages of an inbox as Pub/Sub has them, published and pushed.

A message has our body as its data; group and share are attributes, so are the attempts that it
has used up, and whether the worker that ends it must call the next of its share
(delayed_messages.py). Anybody with the right can publish anything: a message that is not ours is
read as one that no stage can handle.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from bellhop.errors import InvalidError
from bellhop.ports.queue import MESSAGE_LIMIT, Delivery, Message, encode, written

CALLS = "calls"
ATTEMPTS = "attempts"
_DELIVERED = "CloudPubSubDeadLetterSourceDeliveryCount"

_MESSAGES = 1_000
_BYTES = 8_000_000
"""The most of one request: Pub/Sub takes 1,000 messages and 10 MB."""

_BESIDE = 200
"""Bytes of a message in a request beside its body and its attributes' values, at most."""

_TEXT = 2_048
"""Characters that are kept of a body that is not ours."""

_Raw = Mapping[str, Any]


def of_push(body: Any) -> Delivery:
    """Read a push: its request's JSON, or the data of the CloudEvent that was made of it.

    Raises:
        InvalidError: it is no push of Pub/Sub's.
    """
    message = body.get("message") if isinstance(body, Mapping) else None
    if not (isinstance(message, Mapping) and _id(message)):
        raise InvalidError("cannot read a push: it has no message of Pub/Sub's")
    return _delivery(message)


def of_burial(message: _Raw) -> Delivery:
    """Read what Pub/Sub has buried; it says how often it was delivered in vain."""
    delivery = _delivery(message)
    in_vain = _number(attributes_of(message).get(_DELIVERED)) or 1
    return replace(delivery, attempt=delivery.attempt - 1 + in_vain)


def attributes_of(message: _Raw) -> _Raw:
    """Return a message's attributes, which may not be there at all."""
    found = message.get("attributes")
    return found if isinstance(found, Mapping) else {}


def to_publish(message: Message, **more: str) -> _Raw:
    """Write a message as Pub/Sub takes one.

    Raises:
        InvalidError: it is not JSON, or too large.
    """
    attributes = {"group": message.group, "share": message.share, **more}
    return {
        "data": written(message).encode(),
        "attributes": {name: value for name, value in attributes.items() if value},
    }


def batches(entries: Sequence[_Raw]) -> Iterator[list[_Raw]]:
    """Part messages into requests that Pub/Sub takes, in order."""
    batch: list[_Raw] = []
    size = 0
    for entry in entries:
        more = _BESIDE + len(entry["data"]) + sum(map(len, entry["attributes"].values()))
        if batch and (len(batch) == _MESSAGES or size + more > _BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += more
    if batch:
        yield batch


def _delivery(message: _Raw) -> Delivery:
    attributes, number = attributes_of(message), _id(message)
    group, share = (str(attributes.get(name, "")) for name in ("group", "share"))
    # Pub/Sub's own count is of deliveries for which nobody answered, and is left to it.
    attempt = 1 + _number(attributes.get(ATTEMPTS))
    read = Message(_body(message.get("data")), group, share)
    return Delivery(read, number, f"{number}.{attempt}", attempt)


def _id(message: _Raw) -> str:
    return str(message.get("messageId") or message.get("message_id") or "")


def _number(text: Any) -> int:
    digits = str(text)[:6]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _body(data: Any) -> Mapping[str, Any]:
    """Read a body; what somebody sent by hand becomes one that no stage can read."""
    try:
        raw = data if isinstance(data, bytes) else base64.b64decode(data or "", validate=True)
        text = raw.decode()
    except (binascii.Error, TypeError, ValueError):
        text = str(data)
    with suppress(ValueError, RecursionError):
        body = json.loads(text) if len(text) <= MESSAGE_LIMIT else None
        # It may have to be written again: NaN cannot be, nor what grows beyond the limit.
        if isinstance(body, dict) and len(encode(body)) <= MESSAGE_LIMIT:
            return body
    return {"text": text[:_TEXT]}
