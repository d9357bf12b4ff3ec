"""Records which messages are retried, for the schedule's measure of the oldest pending work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from bellhop.cloud.resources import Resources
from bellhop.errors import BellhopError
from bellhop.ports.queue import Again, Delivery, Result
from bellhop.records.retries import FEW
from bellhop.stages.inbox import WAITS


def record(
    worked: Iterable[tuple[Delivery, Result]], here: Resources
) -> Iterator[tuple[Delivery, Result]]:
    """Yield deliveries with their results, and record those that fail after a few attempts.

    It comes before the queue learns the result: a worker that dies in between gets the message
    again, and records its end then.
    """
    for delivery, result in worked:
        if delivery.attempt > FEW and result is not WAITS:
            # A store that fails may be why the message does.
            with suppress(BellhopError):
                _record(delivery, result, here)
        yield delivery, result


def _record(delivery: Delivery, result: Result, here: Resources) -> None:
    if isinstance(result, Again) and delivery.attempt < here.settings.attempts:
        here.records.retries.add(delivery.message)
    else:
        here.records.retries.remove(delivery.message)
