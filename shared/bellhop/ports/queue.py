"""Messages between the stages: at least once, in order within a group, dead-lettered in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """What crosses a queue: identity, never content.

    Messages of one `group` are delivered one batch at a time and in the order they were
    published; while the first waits for its retry, those behind it wait too.
    """

    body: Mapping[str, Any]
    group: str
    delay: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in a worker's hands; `receipt` names this delivery, `attempt` counts from 1."""

    message: Message
    id: str
    receipt: str
    attempt: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up: why, and when."""

    message: Message
    id: str
    attempts: int
    reason: str
    died_at: datetime
    context: Mapping[str, Any] = field(default_factory=dict)


class Queue(Protocol):
    """One stage's inbox."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Add messages, all or none."""
        ...

    def receive(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Take up to `limit` messages, waiting for the first one up to `wait`.

        A message taken is hidden, and its group held, until it is done, is retried, or the
        adapter's visibility timeout has passed. Messages of one group keep their order.
        """
        ...

    def done(self, delivery: Delivery) -> None:
        """Remove a message for good; a receipt that has expired is ignored."""
        ...

    def retry(self, delivery: Delivery, *, delay: timedelta, reason: str) -> bool:
        """Give a message back to be delivered again after `delay`.

        Return False where that was its last attempt and it is now a dead letter.
        """
        ...


class DeadLetters(Protocol):
    """Messages that were given up, kept until somebody replays or drops them."""

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
