"""Messages between the stages: publishing apart from receiving, and nothing that leans on order.

A queue may repeat a message, reorder, deliver one to two workers at once, miscount its attempts,
or replay it a week later from the dead letters. Groups, pauses and counts save work where a
provider has them, and shares keep one sender's flood from others; no correctness hangs on them
(docs/adr/0004).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from msgspec import Struct

from bellhop.errors import InvalidError, TooLargeError

MESSAGE_LIMIT = 64 * 1024
"""Bytes of one body as JSON: SQS takes 256 KB for a batch of ten, and ours are identities."""

GROUP_LIMIT = 128
"""Characters of a group's or a share's name, printable ASCII: what SQS takes for a group."""

encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=dict).encode
"""Writes JSON as messages have it."""


class Message(Struct, frozen=True):
    """A message: identities, never content; two equal bodies are two messages.

    Messages of one `group` are, where the provider can, delivered one batch at a time and in
    the order of their publishing. Those of one `share`, the fairness key, wait for each other:
    shares are served in turn, so that one with many messages delays no other.
    """

    body: Mapping[str, Any]
    group: str
    share: str = ""


def named(message: Message) -> Message:
    """Return a message whose group and share have names that every queue takes.

    Raises:
        InvalidError: one of them has none.
    """
    for noun, name, fewest in (("group", message.group, 1), ("share", message.share, 0)):
        plain = name.isascii() and (name.isprintable() or not name)
        if not (fewest <= len(name) <= GROUP_LIMIT and plain):
            raise InvalidError(
                f"cannot publish a message of the {noun} {name[:GROUP_LIMIT]!r}: a {noun}'s name"
                f" has {fewest} to {GROUP_LIMIT} printable ASCII characters"
            )
    return message


def written(message: Message) -> str:
    """Write the body of a message that every queue takes.

    Raises:
        InvalidError: it is not JSON.
        TooLargeError: it is longer than every queue takes.
    """
    try:
        text = encode(dict(message.body))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            f"cannot publish a message of the group {message.group!r}: it is not JSON"
        ) from error
    if len(text) > MESSAGE_LIMIT:
        raise TooLargeError(
            f"cannot publish a message of the group {message.group!r}: its {len(text)} bytes exceed"
            f" the queue's {MESSAGE_LIMIT}"
        )
    return text


class Delivery(Struct, frozen=True):
    """A message that a worker received.

    `receipt` names this delivery, and `attempt` is a hint, from 1. `deliveries` count those of this
    attempt, where a queue knows: more than one is a message whose workers reported nothing, since
    they did not begin it, or were killed.
    """

    message: Message
    id: str
    receipt: str
    attempt: int
    deliveries: int = 1


class Done(Struct, frozen=True):
    """The message is finished for good."""


class Again(Struct, frozen=True):
    """The message is to come again, after a while if the provider can wait."""

    after: timedelta
    reason: str


class GivenUp(Struct, frozen=True):
    """The message belongs to the dead letters: nobody foresaw what happened to it."""

    reason: str


Result = Done | Again | GivenUp
"""The result of a delivery; a Lambda's batch response, an HTTP status and a loop are made of it."""


class DeadLetter(Struct, frozen=True):
    """A dead-lettered message: why, and when."""

    message: Message
    id: str
    attempts: int
    reason: str
    died_at: datetime
    context: Mapping[str, Any] = {}


class Queue(Protocol):
    """One stage's inbox, seen by those who write into it."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Add messages, however many; after an error some may have been added.

        Raises:
            TooLargeError: a body exceeds MESSAGE_LIMIT.
            InvalidError: a body is not JSON, or the name of a group or a share is not printable
                ASCII, or longer than GROUP_LIMIT, or a group's is empty.
        """
        ...


class Consumer(Protocol):
    """One stage's inbox, seen by a worker that fetches; clouds that push have none."""

    def receive(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Take up to `limit` messages, waiting for the first one up to `wait`.

        A message taken is hidden, and its group held, until it is settled or the adapter's
        visibility timeout has passed.
        """
        ...

    def settle(self, delivery: Delivery, result: Result) -> Result:
        """Do with a message what came of it; a receipt that has expired is ignored.

        Return what became of it: `Again` turns to `GivenUp` where its attempts are used up.
        """
        ...

    def extend(self, delivery: Delivery) -> bool:
        """Hold a message for another visibility timeout from now; False if it was too late."""
        ...


class Backlog(Struct, frozen=True):
    """How much there is to do.

    Messages that are due and wait, those in flight, and since when the first one waits.
    Messages that failed and are not due yet are `delayed`, where the queue can count them; `reason`
    is the failure of the one that is due first.
    """

    waiting: int
    held: int
    since: datetime | None
    delayed: int = 0
    reason: str = ""


class Watched(Protocol):
    """One stage's inbox, seen by people."""

    def backlog(self) -> Backlog:
        """Count what is to be done."""
        ...


class DeadLetters(Protocol):
    """Dead-lettered messages, kept until somebody replays or drops them."""

    def list(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the dead letters, oldest first."""
        ...

    def replay(self, id: str) -> None:  # noqa: A002 - the message's id, as the ports call it
        """Publish a dead letter again with its attempts forgotten.

        Raises:
            MissingError: there is no such dead letter.
        """
        ...

    def drop(self, id: str) -> None:  # noqa: A002 - as `replay` has it
        """Forget a dead letter for good.

        Raises:
            MissingError: there is no such dead letter.
        """
        ...
