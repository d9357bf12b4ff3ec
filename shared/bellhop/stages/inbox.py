"""What becomes of a message after its stage has worked on it: done, tried again, or given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from bellhop.errors import PermanentError, TemporaryError
from bellhop.logs import Log
from bellhop.ports.queue import Delivery, Queue
from bellhop.settings import Settings


class Stage(Protocol):
    """Does one message's work."""

    def handle(self, body: Mapping[str, Any], attempt: int) -> None:
        """Do the work; `attempt` above 1 says that an earlier try may have got half-way.

        Raises:
            PermanentError: it is recorded on the object it concerns; trying again is useless.
            TemporaryError: it may pass.
        """
        ...


class Inbox:
    """Feeds a stage from a queue; the only place of a stage that catches broadly."""

    def __init__(self, name: str, stage: Stage, queue: Queue, settings: Settings, log: Log) -> None:
        self._name = name
        self._stage = stage
        self._queue = queue
        self._settings = settings
        self._log = log

    def work(self, deliveries: Sequence[Delivery]) -> None:
        """Work on a batch in order.

        Of equal messages only the first is worked on: they carry identity, and the stage reads
        what is current. After a failure the rest of its group is given back untouched, so that
        the order within the group holds.
        """
        worked: set[str] = set()
        stuck: set[str] = set()
        for delivery in deliveries:
            group = delivery.message.group
            identity = repr(_identity(delivery.message.body))
            if group in stuck:
                self._queue.retry(delivery, delay=timedelta(0), reason="its group waits")
            elif identity in worked and delivery.attempt == 1:
                self._queue.done(delivery)
            elif self._one(delivery):
                worked.add(identity)
            else:
                stuck.add(group)

    def _one(self, delivery: Delivery) -> bool:
        try:
            self._stage.handle(delivery.message.body, delivery.attempt)
        except PermanentError as error:
            self._log.warning("Gave up a message", stage=self._name, error=str(error))
        except TemporaryError as error:
            self._again(delivery, str(error), error.delay)
            return False
        except Exception as error:  # noqa: BLE001 - the environment is guilty until the last try
            self._log.error("Failed on a message", error, stage=self._name)
            self._again(delivery, f"{type(error).__name__}: {error}", None)
            return False
        self._queue.done(delivery)
        return True

    def _again(self, delivery: Delivery, reason: str, delay: timedelta | None) -> None:
        pause = self._settings.retry_first * 2 ** min(delivery.attempt - 1, 16)
        pause = max(min(pause, self._settings.retry_longest), delay or timedelta(0))
        if not self._queue.retry(delivery, delay=pause, reason=reason):
            self._log.error("Moved a message to the dead letters", stage=self._name, reason=reason)


def _identity(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in {"trace", "rang"}}
