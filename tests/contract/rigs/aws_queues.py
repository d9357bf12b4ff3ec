"""SQS's standard queues, by a moto server and in real time.

Of the courtesies SQS keeps a pause and counts attempts, nearly always; moto does always. It keeps
no order, may repeat what is done, and its shares take turns only under a load that no test makes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from bellhop.adapters.aws.queue import DEAD, SqsQueue
from bellhop.ports.queue import Delivery, Result
from tests.contract import courtesies
from tests.contract.rigs import aws


class ClosedQueue(SqsQueue):
    """A queue that can be closed, as the suite has it: its connections are the rig's."""

    def close(self) -> None:
        pass


class Rig(aws.Rig):
    """Queues that are made when they are asked for."""

    ports: ClassVar[frozenset[str]] = frozenset({"queue", "consumer", "dead letters"})
    courtesies: ClassVar[frozenset[str]] = frozenset({courtesies.PAUSES, courtesies.COUNTS})
    unit: ClassVar[timedelta] = timedelta(seconds=0.5)

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
