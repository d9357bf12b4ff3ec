"""Pub/Sub's topics, by Google's own emulator and in real time, over a store in Firestore's.

A message comes in the form of a push. It is fetched for that, by a subscription that does not push:
several processes cannot be one address, and a push to nobody comes again a second later.
test_queue.py has the emulator push.

Of the courtesies Pub/Sub keeps none. Pauses and counts are the adapter's own.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, ClassVar

from bellhop.adapters.gcp.queue import DEAD, PubsubQueue
from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.errors import BellhopError
from bellhop.ports.queue import Delivery, Result
from tests.contract import courtesies
from tests.contract.rigs import gcp

BATCH = 10
_POLL = 0.02


class ClosedQueue(PubsubQueue):
    """A queue that can be closed, as the suite has it: its connections are the rig's."""

    held = timedelta(0)

    def close(self) -> None:
        pass


class Rig(gcp.Rig):
    """Topics and subscriptions that are made when they are asked for."""

    ports: ClassVar[frozenset[str]] = frozenset({"queue", "dead letters"})
    courtesies: ClassVar[frozenset[str]] = frozenset({courtesies.PAUSES, courtesies.COUNTS})
    unit: ClassVar[timedelta] = timedelta(seconds=0.5)
    where: ClassVar[str] = "pubsub_place"

    def queue(self, name: str = "inbox", *, visibility: float = 60, attempts: int = 3) -> Any:
        make(self.services, name)
        queue = ClosedQueue(
            self.services,
            name,
            store=self.store(),
            clock=self.clock,
            attempts=attempts,
        )
        queue.patience = self.unit
        queue.held = self.span(visibility)
        return queue

    def serve(self, queue: Any, work: Callable[[Delivery], Result], *, idle: float = 0) -> None:
        quiet_at = time.monotonic() + idle
        while True:
            queue.wake()
            taken = self._taken(queue)
            for each in taken:
                self._push(queue, each, work)
            if taken:
                quiet_at = time.monotonic() + idle
            elif time.monotonic() >= quiet_at:
                return
            else:
                time.sleep(_POLL)

    def _taken(self, queue: Any) -> Sequence[Any]:
        request = {"max_messages": BATCH, "return_immediately": True}
        found: Sequence[Any] = self._call(queue, "pull", **request).received_messages
        self._hold(queue, found, queue.held)
        return found

    def _push(self, queue: Any, taken: Any, work: Callable[[Delivery], Result]) -> None:
        try:
            queue.pushed(as_push(taken.message), work)
        except BellhopError:
            self._hold(queue, [taken], timedelta(0))
        else:
            self._call(queue, "acknowledge", ack_ids=[taken.ack_id])

    def _hold(self, queue: Any, taken: Sequence[Any], span: timedelta) -> None:
        receipts = [each.ack_id for each in taken]
        if receipts:
            seconds = int(span.total_seconds())
            body = {"ack_ids": receipts, "ack_deadline_seconds": seconds}
            self._call(queue, "modify_ack_deadline", **body)

    def _call(self, queue: Any, operation: str, **request: Any) -> Any:
        subscription = f"projects/{self.services.project}/subscriptions/{queue.name}"
        request["subscription"] = subscription
        return self.services.call("subscriber", operation, request, doing="test")


def as_push(message: Any) -> dict[str, Any]:
    """Write a message as the body of a push has it, like Pub/Sub without what is empty."""
    message_fields = {"messageId": message.message_id, "message_id": message.message_id}
    if message.data:
        message_fields["data"] = base64.b64encode(message.data).decode()
    if message.attributes:
        message_fields["attributes"] = dict(message.attributes)
    return {"message": message_fields}


def make(services: Services, name: str) -> None:
    """Make an inbox as Terraform would, but for its push; what is there stays as it is."""
    for each in (name, name + DEAD):
        topic = f"projects/{services.project}/topics/{each}"
        subscription = f"projects/{services.project}/subscriptions/{each}"
        # Who dies before he has said for how long he holds a message holds it for so long.
        options = {"name": subscription, "topic": topic, "ack_deadline_seconds": 5}
        _made(services, "publisher", "create_topic", {"name": topic})
        _made(services, "subscriber", "create_subscription", options)


def _made(services: Services, service: str, operation: str, request: Any) -> None:
    there = frozenset({"ALREADY_EXISTS"})
    with suppress(RefusedError):
        services.call(service, operation, request, doing="test", taken=there)
