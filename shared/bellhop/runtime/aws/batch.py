"""Batches of messages that Lambda takes from SQS, for the stage that works on them.

    records ─► Inbox.work ─► Done     Lambda deletes it
                             Again    published again, delayed by its pause
                             GivenUp  a dead letter with its reason, deleted
    time is running out   ─► the rest is visible at once, and reported as failed

A message is begun only while more than half of the function's time is left: its time-out is to be
twice what the longest message takes. A worker that is killed all the same has reported nothing, and
all of its batch comes again. A message that kills its workers must not end those that come with it:
messages that came before are worked on last, another one first each time, and each is settled as
soon as it is done. From the fourth delivery without a report on, a record counts how many workers
began a message, and so many of them as there are attempts end it: a message that Lambda
had no capacity or no time to begin is not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.sqs_messages import read_record
from bellhop.errors import BellhopError
from bellhop.logs import Log
from bellhop.ports.queue import Again, Delivery, Done, GivenUp, Result
from bellhop.runtime.aws.resources import Resources, from_environment
from bellhop.runtime.cloud import retries
from bellhop.runtime.cloud.ready import Ready
from bellhop.state.consumer import WAITS, Inbox, Stage


class Context(Protocol):
    """An invocation, as Lambda describes it."""

    def get_remaining_time_in_millis(self) -> int:
        """Say how much time is left."""
        ...


class Batch:
    """The handler of a function that SQS feeds, with partial batch responses."""

    def __init__(
        self,
        make: Callable[[Resources], Stage],
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        self._ready = Ready(make, opening)

    def __call__(self, event: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Work on a batch; return the messages that must come again."""
        given: Sequence[Mapping[str, Any]] = event.get("Records", [])
        enough = context.get_remaining_time_in_millis() / 2
        try:
            here, stage = self._ready.get()
        except Exception as error:  # noqa: BLE001 - the messages come again, and one line reports it
            Log().error("Cannot open the installation", error)
            return _write_failures(each["messageId"] for each in given)
        failed: list[str] = []
        for name, records in _group_by_inbox(given, here).items():
            deliveries = _order([read_record(each) for each in records])
            inbox = Inbox(name, stage, here.settings, here.log)
            worked = retries.record(inbox.work(deliveries, partial(retries.begin, here)), here)
            failed += _Settlement(name, here).settle(
                deliveries, _work_until(worked, context, enough)
            )
        here.end()
        return _write_failures(failed)


class _Settlement:
    """Settles a batch with one inbox's queue."""

    def __init__(self, name: str, here: Resources) -> None:
        self._name = name
        self._queue: SqsQueue = here.queues[name]
        self._log = here.log

    def settle(
        self, deliveries: Sequence[Delivery], worked: Iterator[tuple[Delivery, Result]]
    ) -> Iterable[str]:
        """Settle each result as it comes, release the rest; return the ids that come again."""
        rest = {each.id: each for each in deliveries}
        failed = []
        for delivery, result in worked:
            if result is WAITS:
                continue
            # SQS may hand over a message twice in one batch.
            rest.pop(delivery.id, None)
            if not self._settle_one(delivery, result):
                failed.append(delivery.id)
        try:
            self._queue.give_back(list(rest.values()))
        except BellhopError as error:
            # They come when their visibility ends.
            self._log.warning("Cannot give back messages", inbox=self._name, error=str(error))
        return [*failed, *rest]

    def _settle_one(self, delivery: Delivery, result: Result) -> bool:
        """Settle a message before Lambda deletes it; False if Lambda must keep it."""
        if result == Done() and delivery.deliveries == 1:
            return True
        try:
            became = self._queue.settle(delivery, result)
        except BellhopError as error:
            self._log.warning("Cannot settle a message", inbox=self._name, error=str(error))
            return result == Done()
        if isinstance(became, GivenUp):
            self._log.warning(
                "Moved a message to the dead letters", inbox=self._name, reason=became.reason
            )
        # A message that expired in flight was not published again: Lambda must not delete it.
        return not (isinstance(result, Again) and isinstance(became, Done))


def _order(deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
    """Return new messages, then those delivered before, each of which is once the first."""
    new = [each for each in deliveries if each.attempt == each.deliveries == 1]
    again = sorted((each for each in deliveries if each not in new), key=lambda each: each.id)
    first = max((each.attempt + each.deliveries for each in again), default=0) % max(len(again), 1)
    return [*new, *again[first:], *again[:first]]


def _work_until(
    worked: Iterator[tuple[Delivery, Result]], context: Context, enough: float
) -> Iterator[tuple[Delivery, Result]]:
    """Yield results while there is enough time to begin another message."""
    while context.get_remaining_time_in_millis() >= enough:
        if (each := next(worked, None)) is None:
            return
        yield each


def _group_by_inbox(
    given: Iterable[Mapping[str, Any]], here: Resources
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    names = {queue.name: inbox for inbox, queue in here.queues.items()}
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in given:
        found[names[each["eventSourceARN"].rpartition(":")[2]]].append(each)
    return found


def _write_failures(numbers: Iterable[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in numbers]}
