"""Messages as SQS has them: sent with attributes, received, or handed over by Lambda."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bellhop.ports.queue import (
    DeadLetter,
    Delivery,
    Message,
    written,
)

_ATTEMPT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)

REASON_LIMIT = 2_048

_SILENT = "its workers fell silent, each time: they were killed, or ran out of time"

Raw = Mapping[str, Any]


def read_record(record: Raw) -> Delivery:
    """Read one record of the event that Lambda passes to a function that SQS feeds."""
    attributes = record.get("messageAttributes", {})
    return read_message(
        {
            "MessageId": record["messageId"],
            "ReceiptHandle": record["receiptHandle"],
            "Body": record["body"],
            "Attributes": record["attributes"],
            "MessageAttributes": {
                name: {"StringValue": value.get("stringValue", "")}
                for name, value in attributes.items()
            },
        }
    )


def write_message(message: Message, **more: str) -> dict[str, Any]:
    """Write a message as SQS takes one; attributes may not be empty."""
    attributes = {"group": message.group, "share": message.share, **more}
    entry: dict[str, Any] = {
        "MessageBody": written(message),
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value}
            for name, value in attributes.items()
            if value
        },
    }
    if message.share:
        # SQS's groups have no blanks; two shares that differ by one take turns together.
        entry["MessageGroupId"] = message.share.replace(" ", "_")
    return entry


def read_message(raw: Raw) -> Delivery:
    message = Message(_read_body(raw["Body"]), _attribute(raw, "group"), _attribute(raw, "share"))
    attempt = _read_attempt(_attribute(raw, "attempt"))
    deliveries = int(raw["Attributes"].get("ApproximateReceiveCount", 1))
    return Delivery(message, raw["MessageId"], raw["ReceiptHandle"], attempt, deliveries)


def _read_attempt(text: str) -> int:
    """Read an attempt; what somebody wrote by hand is the first."""
    return int(text) if _ATTEMPT.fullmatch(text) else 1


def _read_body(text: str) -> Mapping[str, Any]:
    """Read a body; what somebody sent by hand becomes one that no stage can read."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else {"text": text[:REASON_LIMIT]}


def read_dead_letter(raw: Raw, queue: str) -> DeadLetter:
    delivery = read_message(raw)
    died, reason = _attribute(raw, "died"), _attribute(raw, "reason")
    sent = int(raw["Attributes"].get("SentTimestamp", 0)) / 1000
    return DeadLetter(
        message=delivery.message,
        id=delivery.id,
        attempts=int(_attribute(raw, "attempts") or delivery.attempt),
        reason=json.loads(reason) if reason else _SILENT,
        died_at=datetime.fromisoformat(died) if died else datetime.fromtimestamp(sent, UTC),
        context={"queue": queue},
    )


def _attribute(raw: Raw, name: str) -> str:
    return str(raw.get("MessageAttributes", {}).get(name, {}).get("StringValue", ""))


def handle_of(delivery: Delivery) -> str:
    return delivery.receipt.rpartition(" ")[2]


def whole_seconds(span: timedelta) -> int:
    """Round up to what SQS counts in: no pause is shorter than asked."""
    return max(math.ceil(span.total_seconds()), 0)
