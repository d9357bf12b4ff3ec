"""Records which messages are retried.

The schedule measures the oldest pending work by them, and a message that kills its workers ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from bellhop.errors import BellhopError
from bellhop.ports.queue import Again, Delivery, GivenUp, Result
from bellhop.runtime.cloud.resources import Resources
from bellhop.state.consumer import WAITS
from bellhop.state.retries import FEW


def record(
    worked: Iterable[tuple[Delivery, Result]], here: Resources
) -> Iterator[tuple[Delivery, Result]]:
    """Yield deliveries with their results, and record those that fail after a few attempts.

    It comes before the queue learns the result: a worker that dies in between gets the message
    again, and records its end then.
    """
    for delivery, result in worked:
        if max(delivery.attempt, delivery.deliveries) > FEW and result is not WAITS:
            # A store that fails may be why the message does.
            with suppress(BellhopError):
                _record(delivery, result, here)
        yield delivery, result


def _record(delivery: Delivery, result: Result, here: Resources) -> None:
    if not isinstance(result, Again) or delivery.attempt >= here.settings.attempts:
        here.records.retries.remove(delivery.message)
    elif delivery.attempt > FEW:
        here.records.retries.add(delivery.message)


def begin(here: Resources, delivery: Delivery) -> GivenUp | None:
    """Record that a message is begun of which several workers reported nothing.

    Return that it is dead-lettered, if as many began it as there may be attempts.
    """
    if delivery.deliveries <= FEW:
        return None
    begun = 0
    # A store that fails may be why nobody reported.
    with suppress(BellhopError):
        begun = here.records.retries.begin(delivery.message)
    if begun <= here.settings.attempts:
        return None
    return GivenUp(f"{begun - 1} workers began it and fell silent: killed, or out of time")
