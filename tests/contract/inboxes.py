"""What the tests of a queue share: messages by number, and ways to go through an inbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from bellhop.ports.queue import Again, DeadLetter, Delivery, Done, GivenUp, Message, Result

NOW = timedelta(0)


def message(number: int, group: str = "g", share: str = "") -> Message:
    return Message({"n": number}, group, share)


def numbers(deliveries: Iterable[Delivery | DeadLetter]) -> list[int]:
    return [delivery.message.body["n"] for delivery in deliveries]


def serve(rig: Any, queue: Any, result: Result | None = None) -> list[Delivery]:
    """Have all that is available delivered and settled; return it in order."""
    seen: list[Delivery] = []

    def work(delivery: Delivery) -> Result:
        seen.append(delivery)
        return result or Done()

    rig.serve(queue, work)
    return seen


def drain(queue: Any) -> list[int]:
    """Fetch and finish all that is available, one at a time; return it in order."""
    seen = []
    while deliveries := queue.receive(1, wait=NOW):
        seen += numbers(deliveries)
        queue.settle(deliveries[0], Done())
    return seen


def fail(queue: Any, times: int, reason: str = "no luck") -> Sequence[bool]:
    """Fetch the first message and give it back, again and again; say each time if it lives on."""
    return [
        isinstance(queue.settle(queue.receive(1, wait=NOW)[0], Again(NOW, reason)), Again)
        for _ in range(times)
    ]


def bury(rig: Any, queue: Any, reason: str = "no luck") -> None:
    """Give up all that is available."""
    serve(rig, queue, GivenUp(reason))


def all_came(seen: Sequence[Any], wanted: Iterable[Any]) -> bool:
    """Say if each expected message came, at least as often as expected, and nothing else."""
    expected = Counter(wanted)
    return expected <= Counter(seen) and set(seen) == set(expected)
