"""SQS's standard queues, by a moto server; time passes by itself, and faster where a test says so.

Of the courtesies SQS keeps a pause and counts attempts, nearly always; moto does always. It keeps
no order, may repeat what is done, and its shares take turns only under a load that no test makes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bellhop.adapters.aws.queue import DEAD, SqsQueue
from bellhop.ports.queue import Delivery, Result
from tests.contract import courtesies
from tests.contract.rigs import aws
from tests.lab.moto import pass_time


class ClosedQueue(SqsQueue):
    """A queue that can be closed, as the suite has it: its connections are the rig's."""

    def close(self) -> None:
        pass


class Ahead:
    """The machine's clock, and what a test has let pass."""

    def __init__(self) -> None:
        self.by = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by


class Rig(aws.Rig):
    """Queues that are made when they are asked for."""

    ports: ClassVar[frozenset[str]] = frozenset({"queue", "consumer", "dead letters"})
    courtesies: ClassVar[frozenset[str]] = frozenset({courtesies.PAUSES, courtesies.COUNTS})
    unit: ClassVar[timedelta] = timedelta(seconds=0.5)

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.clock = self._ahead = Ahead()

    def pass_time(self, units: float) -> None:
        """Have moto's queues and this clock be ahead by more; AWS' own are waited for."""
        endpoint = self.place.rpartition("/")[0]
        if endpoint.startswith(aws.LIVE):
            super().pass_time(units)
            return
        pass_time(endpoint, self.span(units).total_seconds())
        self._ahead.by += self.span(units)

    def queue(self, name: str = "inbox", *, visibility: float = 60, attempts: int = 3) -> Any:
        sqs, name = self.services.client("sqs"), f"{self.name}-{name}"
        sqs.create_queue(QueueName=name + DEAD)
        return ClosedQueue(
            self.services,
            sqs.create_queue(QueueName=name)["QueueUrl"],
            clock=self.clock,
            visibility=self.span(visibility),
            attempts=attempts,
        )

    def serve(self, queue: Any, work: Callable[[Delivery], Result], *, idle: float = 0) -> None:
        wait = timedelta(seconds=idle)
        while deliveries := queue.receive(10, wait=wait):
            for delivery in deliveries:
                queue.settle(delivery, work(delivery))
