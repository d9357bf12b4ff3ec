"""Result of a message after its stage has processed it: done, retried, or dead-lettered.

A Lambda's batch response, an HTTP status for a push and the embedded loop are callers of `work`
that differ in what they do with its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Protocol

from bellhop.errors import InvalidError, PermanentError, TemporaryError
from bellhop.logs import Log
from bellhop.ports.queue import Again, Delivery, Done, GivenUp, Result
from bellhop.settings import Settings
from bellhop.state import messages
from bellhop.state.envelope import Envelope

WAITS = Again(timedelta(0), "its group waits")
"""The result of a message that was not processed, since one before it in its group failed."""

_DOUBLINGS = 16


class Stage(Protocol):
    """Handles one message; the records say which part of the work is done already."""

    def handle(self, message: Any) -> None:
        """Do the work of one of the stage's messages.

        Raises:
            PermanentError: it is recorded on the object it concerns; trying again is useless.
            TemporaryError: it may pass.
        """
        ...


class Inbox:
    """Runs a stage over deliveries; the only place of a stage that catches broadly."""

    def __init__(self, name: str, stage: Stage, settings: Settings, log: Log) -> None:
        self._name = name
        self._stage = stage
        self._settings = settings
        self._log = log

    def work(
        self,
        deliveries: Sequence[Delivery],
        begin: Callable[[Delivery], Result | None] = lambda _: None,
    ) -> Iterator[tuple[Delivery, Result]]:
        """Work on a batch in order, and yield what came of each delivery as soon as it is known.

        Of messages that ask for the same work only the first is worked on: the stage reads what
        is current, and all that they refer to was written before the batch was received. After a
        failure the rest of its group is given back untouched, so that a queue that keeps the
        order within a group can.

        `begin` is called with each delivery before the work on it. A result that it returns is what
        came of the delivery, and the stage is not called.
        """
        worked: set[tuple[Any, ...]] = set()
        stuck: set[str] = set()
        for delivery in deliveries:
            group = delivery.message.group
            if group in stuck:
                yield delivery, WAITS
                continue
            try:
                message = messages.read(delivery.message.body)
            except InvalidError as error:
                self._log.error("Cannot read a message", error, stage=self._name)
                yield delivery, GivenUp(str(error))
                continue
            except TemporaryError as error:
                stuck.add(group)
                yield delivery, self._again(error, delivery.attempt)
                continue
            result = Done() if message.work in worked else begin(delivery)
            if result is None:
                result = self._one(message, delivery.attempt)
            worked.add(message.work)
            if isinstance(result, Again):
                stuck.add(group)
            yield delivery, result

    def _one(self, message: Envelope, attempt: int) -> Result:
        try:
            self._stage.handle(message)
        except PermanentError as error:
            self._log.warning("Dead-lettered a message", stage=self._name, error=str(error))
        except TemporaryError as error:
            return self._again(error, attempt)
        except Exception as error:  # noqa: BLE001 - the environment is guilty until the last try
            self._log.error("Failed on a message", error, stage=self._name)
            return Again(self._pause(attempt), f"an unforeseen failure, which the log has: {error}")
        return Done()

    def _again(self, error: TemporaryError, attempt: int) -> Again:
        return Again(self._pause(attempt) if error.delay is None else error.delay, str(error))

    def _pause(self, attempt: int) -> timedelta:
        pause: timedelta = self._settings.retry_first * 2 ** min(max(attempt, 1) - 1, _DOUBLINGS)
        return min(pause, self._settings.retry_longest)
