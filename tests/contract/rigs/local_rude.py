"""The embedded mode's queue without its manners: it pushes, out of order, and repeats itself.

Nobody runs this. It holds the suite to what the ports promise: a test that needs more says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from bellhop.adapters.local.queue import SqliteQueue
from bellhop.ports.queue import Again, DeadLetter, Delivery, Message, Result
from tests.contract import courtesies
from tests.contract.rigs import local

BATCH = 50


class RudeQueue:
    """What remains of an inbox where deliveries are pushed: it is written into, and buries."""

    def __init__(self, behind: SqliteQueue) -> None:
        self.behind = behind

    def publish(self, messages: Sequence[Message]) -> None:
        self.behind.publish(messages)

    def list(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        return self.behind.list(limit=limit)

    def replay(self, id: str) -> None:  # noqa: A002 - as the port has it
        self.behind.replay(id)

    def drop(self, id: str) -> None:  # noqa: A002 - as the port has it
        self.behind.drop(id)

    def close(self) -> None:
        self.behind.close()


class Rig(local.Rig):
    """Deliveries come last first, the last of each batch twice, and at once after a failure."""

    ports: ClassVar[frozenset[str]] = frozenset({"queue", "dead letters"})
    courtesies: ClassVar[frozenset[str]] = frozenset({courtesies.COUNTS})

    def queue(self, name: str = "inbox", *, visibility: float = 60, attempts: int = 3) -> Any:
        return RudeQueue(self._queue(name, visibility, attempts))

    def serve(self, queue: Any, work: Callable[[Delivery], Result], *, idle: float = 0) -> None:
        wait = timedelta(seconds=idle)
        while deliveries := queue.behind.receive(BATCH, wait=wait):
            work(deliveries[-1])
            for delivery in reversed(deliveries):
                result = work(delivery)
                if isinstance(result, Again):
                    result = Again(timedelta(0), result.reason)
                queue.behind.settle(delivery, result)
