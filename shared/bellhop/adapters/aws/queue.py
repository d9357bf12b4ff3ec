"""One stage's inbox on SQS: a standard queue, and a second one for its dead letters.

    publish ──► available ──receive──► in flight ─Done─► deleted
                 ▲  ▲ ▲                │ │ └───Again──►  published again, delayed by its pause
                 │  │ └── time is up ──┘ └──GivenUp, last attempt──► dead, with its reason
                 │  └───── not begun ──┘
                 └────────────────────────── replay ─────────────────────┘

Attempts travel in the message, since SQS counts deliveries: also those of messages that Lambda had
no capacity or no time to begin. SQS itself dead-letters a message without a report for days.

A message's share is SQS's message group, which on a standard queue is a tenant and no order: while
one has many messages in flight, the others are served first. Our group travels as an attribute, for
the inbox that works on a batch. A dead letter is a message of its own, since SQS can add nothing to
one.

SQS answers with a part of what there is, counts roughly, and lets an expired receipt delete: none
of it matters to what reads records and writes on condition (docs/adr/0004, docs/adr/0011).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.adapters.aws.sqs_messages import (
    REASON_LIMIT,
    Raw,
    handle_of,
    read_dead_letter,
    read_message,
    whole_seconds,
    write_message,
)
from bellhop.errors import (
    BellhopError,
    InvalidError,
    MissingError,
    ThrottledError,
)
from bellhop.ports.clock import Clock
from bellhop.ports.queue import (
    Again,
    Backlog,
    DeadLetter,
    Delivery,
    Done,
    GivenUp,
    Message,
    Result,
    encode,
    named,
)

DEAD = "-dead"
"""Ends the name of the queue of an inbox's dead letters."""

_BATCH = 10
"""Messages in one request, as SQS has it: ten of ours stay below its megabyte."""

_POLL = 3
"""Seconds that one request waits for a message: fewer than a client waits for an answer."""

_TRIES = 4
"""How often a batch is sent, or what SQS did not take of it."""

_LONGEST_PAUSE = timedelta(minutes=15)
"""For so long SQS delays a message."""

_LOOK = timedelta(seconds=60)
"""How long dead letters are hidden from others by who looks at them; given back when done."""

_LOOKS_AT_MOST = 5_000
_OTHERS = 5.0
"""Seconds for which letters are waited for that somebody else is looking at."""


_LATELY = timedelta(minutes=10)
"""CloudWatch learns each minute how old a queue's oldest message is, and some minutes late."""

_EXPIRED = frozenset({"InvalidParameterValue", "MessageNotInflight", "ReceiptHandleIsInvalid"})


class SqsQueue:
    """An inbox by the URL of its queue, with its dead letters; shared between threads.

    `attempts` end a message with its reason. The queue's own redrive must allow far more: it
    counts deliveries of which nobody reported anything.
    """

    def __init__(
        self,
        services: Services,
        url: str,
        *,
        clock: Clock,
        visibility: timedelta = timedelta(seconds=120),
        attempts: int = 12,
    ) -> None:
        self._services = services
        self._url = url
        self.name = url.rpartition("/")[2]
        self._clock = clock
        self._visibility = visibility
        self._attempts = attempts
        self._extended: dict[str, float] = {}

    # Publishing ---------------------------------------------------------------------------------

    def publish(self, messages: Sequence[Message]) -> None:
        """Send messages ten at a time, in order; after an error the first ones may be sent."""
        entries = [write_message(named(message)) for message in messages]
        for first in range(0, len(entries), _BATCH):
            self._send(entries[first : first + _BATCH])

    def _send(self, entries: Sequence[Raw]) -> None:
        """Send a batch, and again what was not taken of it."""
        left = list(entries)
        for number in range(1, _TRIES + 1):
            numbered = [{"Id": str(place), **entry} for place, entry in enumerate(left)]
            answer = self._call("send_message_batch", "publish to", Entries=numbered)
            failed = answer.get("Failed", ())
            if any(each["SenderFault"] for each in failed):
                codes = ", ".join(sorted({each["Code"] for each in failed if each["SenderFault"]}))
                raise InvalidError(f"cannot publish to the queue '{self.name}': SQS says {codes}")
            left = [left[place] for place in sorted(int(each["Id"]) for each in failed)]
            if not left:
                return
            if number < _TRIES:
                self._services.rest(number)
        raise ThrottledError(
            f"cannot publish to the queue '{self.name}': SQS did not take {len(left)} messages"
        )

    # Working ------------------------------------------------------------------------------------

    def receive(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Receive up to `limit` messages, ten at most."""
        deadline = time.monotonic() + wait.total_seconds()
        while limit > 0:
            until = self._clock.now() + self._visibility
            left = max(deadline - time.monotonic(), 0)
            found = self._poll(self._url, min(limit, _BATCH), self._visibility, left)
            if found or time.monotonic() >= deadline:
                held = f"{until.timestamp()} "
                return [
                    replace(each, receipt=held + each.receipt) for each in map(read_message, found)
                ]
        return []

    def settle(self, delivery: Delivery, result: Result) -> Result:
        if isinstance(result, Again) and delivery.attempt >= self._attempts:
            result = GivenUp(result.reason)
        if not self._holds(delivery):
            return Done()
        if isinstance(result, Done):
            self._delete(self._url, handle_of(delivery))
            return result
        # Sent before the other is deleted: a worker that dies in between leaves two, never none.
        if isinstance(result, GivenUp):
            self._send_to_dead_letters(delivery, result.reason)
        elif self._hide(delivery):
            self._publish_again(delivery, result.after)
        else:  # Another worker has done it meanwhile.
            return Done()
        # What is left is worked on again: an error here would have it published once more as well.
        with suppress(BellhopError):
            self._delete(self._url, handle_of(delivery))
        return result

    def extend(self, delivery: Delivery) -> bool:
        until = self._clock.now() + self._visibility
        if not self._holds(delivery) or not self._hide(delivery):
            return False
        self._extended[delivery.receipt] = until.timestamp()
        return True

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Have messages come again at once that nobody has worked on; no count ends them."""
        self._show(self._url, [handle_of(each) for each in deliveries])

    def _holds(self, delivery: Delivery) -> bool:
        """Say if a receipt of ours still counts: SQS would let an expired one delete."""
        held = delivery.receipt.rpartition(" ")[0]
        until = self._extended.get(delivery.receipt, float(held or "inf"))
        return self._clock.now().timestamp() < until

    def _hide(self, delivery: Delivery) -> bool:
        """Hide a delivered message for a visibility timeout; False if its receipt has expired."""
        return self._call_with_receipt(
            "change_message_visibility",
            "hold a message of",
            ReceiptHandle=handle_of(delivery),
            VisibilityTimeout=whole_seconds(self._visibility),
        )

    def _delete(self, url: str, handle: str) -> bool:
        return self._call_with_receipt(
            "delete_message", "delete a message of", QueueUrl=url, ReceiptHandle=handle
        )

    def _call_with_receipt(self, operation: str, doing: str, **request: Any) -> bool:
        """Do something by a receipt; False if that has expired."""
        try:
            self._call(operation, doing, taken=_EXPIRED, **request)
        except RefusedError:
            return False
        return True

    def _publish_again(self, delivery: Delivery, pause: timedelta) -> None:
        entry = write_message(delivery.message, attempt=str(delivery.attempt + 1))
        delay = whole_seconds(min(pause, _LONGEST_PAUSE))
        self._call("send_message", "publish again to", DelaySeconds=delay, **entry)

    def _send_to_dead_letters(self, delivery: Delivery, reason: str) -> None:
        details = {
            "reason": encode(reason[:REASON_LIMIT]),
            "attempts": str(delivery.attempt),
            "died": self._clock.now().isoformat(),
        }
        entry = write_message(delivery.message, **details)
        self._call("send_message", "bury a message of", QueueUrl=self._url + DEAD, **entry)

    def _poll(self, url: str, limit: int, visibility: timedelta, wait: float) -> Sequence[Raw]:
        answer = self._call(
            "receive_message",
            "receive from",
            QueueUrl=url,
            MaxNumberOfMessages=limit,
            VisibilityTimeout=whole_seconds(visibility),
            WaitTimeSeconds=min(math.ceil(wait), _POLL),
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        found: Sequence[Raw] = answer.get("Messages", ())
        return found

    def _call(
        self, operation: str, doing: str, *, taken: frozenset[str] = frozenset(), **request: Any
    ) -> dict[str, Any]:
        return self._services.call(
            "sqs",
            operation,
            {"QueueUrl": self._url, **request},
            doing=f"{doing} the queue '{self.name}'",
            taken=taken,
        )

    # Watching -----------------------------------------------------------------------------------

    def backlog(self) -> Backlog:
        """Count roughly, as SQS does; messages that wait for a retry count as held.

        The time since which the first message waits is CloudWatch's, some minutes old.
        """
        waiting, *held = self._count(self._url, "", "NotVisible", "Delayed")
        return Backlog(waiting, sum(held), self._since() if waiting else None)

    def _since(self) -> datetime | None:
        """Return since when the first message waits; None if CloudWatch does not say."""
        now = self._clock.now()
        request = {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": self.name}],
            "StartTime": now - _LATELY,
            "EndTime": now,
            "Period": 60,
            "Statistics": ["Maximum"],
        }
        doing = f"ask how long messages of the queue '{self.name}' wait"
        try:
            answer = self._services.call(
                "cloudwatch", "get_metric_statistics", request, doing=doing
            )
        except BellhopError:
            # How much there is is known all the same.
            return None
        points = answer.get("Datapoints", ())
        last = max(points, key=lambda each: each["Timestamp"], default=None)
        return last and last["Timestamp"] - timedelta(seconds=last["Maximum"])

    def _count(self, url: str, *kinds: str) -> list[int]:
        names = [f"ApproximateNumberOfMessages{kind}" for kind in kinds]
        answer = self._call(
            "get_queue_attributes", "count messages of", QueueUrl=url, AttributeNames=names
        )
        return [int(answer["Attributes"][name]) for name in names]

    # Dead letters -------------------------------------------------------------------------------

    def list(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return dead letters, oldest first; of very many, the oldest of some thousands."""
        with self._receive_dead() as found:
            letters = [read_dead_letter(raw, self.name) for raw in found.values()]
        return sorted(letters, key=lambda each: (each.died_at, each.id))[: max(limit, 0)]

    def replay(self, id: str) -> None:  # noqa: A002 - as the port has it
        with self._receive_dead(id_=id) as found:
            letter = self._get_letter(found, id)
            # Killed in between, it is dead and published: it can be replayed once more.
            self._send([write_message(read_message(letter).message)])
            self._forget(found, letter)

    def drop(self, id: str) -> None:  # noqa: A002 - as `replay` has it
        with self._receive_dead(id_=id) as found:
            self._forget(found, self._get_letter(found, id))

    @contextmanager
    def _receive_dead(self, *, id_: str = "") -> Iterator[dict[str, Raw]]:
        """Receive all dead letters, or until one is found, and release those that are left.

        SQS has no other way to read. A poll that waits asks all of its servers, so that an empty
        answer says that nothing is left; letters that others have received are awaited for a while.
        """
        found: dict[str, Raw] = {}
        deadline = time.monotonic() + _OTHERS
        try:
            while len(found) < _LOOKS_AT_MOST and id_ not in found:
                taken = self._poll(self._url + DEAD, _BATCH, _LOOK, 1)
                found.update((each["MessageId"], each) for each in taken)
                late = time.monotonic() > deadline
                if not taken and (late or self._count_received() <= len(found)):
                    break
            yield found
        finally:
            self._show(self._url + DEAD, [each["ReceiptHandle"] for each in found.values()])

    def _count_received(self) -> int:
        """Say, more or less, how many dead letters somebody is looking at."""
        [looked_at] = self._count(self._url + DEAD, "NotVisible")
        return looked_at

    def _show(self, url: str, handles: Sequence[str]) -> None:
        """Make received messages visible to others at once."""
        for first in range(0, len(handles), _BATCH):
            entries = [
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                for number, handle in enumerate(handles[first : first + _BATCH])
            ]
            self._call(
                "change_message_visibility_batch",
                "give back messages of",
                QueueUrl=url,
                Entries=entries,
            )

    def _get_letter(self, found: Mapping[str, Raw], number: str) -> Raw:
        if number not in found:
            raise MissingError(f"the queue '{self.name}' has no dead letter '{number}'")
        return found[number]

    def _forget(self, found: dict[str, Raw], letter: Raw) -> None:
        self._delete(self._url + DEAD, letter["ReceiptHandle"])
        del found[letter["MessageId"]]
