"""A queue that loses one message: it is delivered to nobody, and is not there any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from bellhop.ports.queue import Delivery, Done

Which = tuple[str, int]
"""An inbox, and the number of a message that is about to be delivered from it, from one on."""


class Losses:
    """Which message is lost, if any; `counts` says how many each inbox has delivered or lost.

    `lost` is the body of the one that was.
    """

    def __init__(self, which: Which | None = None) -> None:
        self.which = which
        self.counts: Counter[str] = Counter()
        self.lost: dict[str, Any] = {}

    def has_lost(self, inbox: str, delivery: Delivery) -> bool:
        """Count a delivery; say whether it is the one that is lost."""
        self.counts[inbox] += 1
        if self.which != (inbox, self.counts[inbox]):
            return False
        self.lost = dict(delivery.message.body)
        return True


class LossyQueue:
    """An inbox that loses what is to be lost."""

    def __init__(self, name: str, queue: Any, losses: Losses) -> None:
        self._name = name
        self._queue = queue
        self._losses = losses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def receive(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Take messages as the inbox has them, but the lost one."""
        while found := self._queue.receive(limit, wait=wait):
            kept = []
            for each in found:
                if self._losses.has_lost(self._name, each):
                    self._queue.settle(each, Done())
                else:
                    kept.append(each)
            if kept:
                return kept
        return []
