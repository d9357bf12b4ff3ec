"""Event source mappings as AWS has them, and what may go wrong with what they hand over.

    receive ─► invoke ─► it answers:          what it does not report as failed is deleted
                     └─► it fails as a whole: all of it is hidden until its visibility ends

Messages are received and deleted with the function's role, as Lambda does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

from tests.functions.lab import Handler, records

_BATCH = 10


class FailedError(Exception):
    """A function failed as a whole, or there was no room for it; it has AWS' word for why."""


class Functions(Protocol):
    """What mappings ask of the cloud that has them."""

    def borrow(self, role: str, service: str) -> Any:
        """Return a client with the credentials of a role, the account's own for none."""
        ...

    def call(self, function: str, given: Any) -> Any:
        """Invoke a function."""
        ...


@dataclass(frozen=True)
class Manner:
    """How a batch is handed over.

    It goes to so many `at_once`; `again` has each message come twice. It goes to the function's
    alias, to another `version` of it, or to what is given by stage, `by`.
    """

    at_once: int = 1
    again: bool = False
    version: str = ""
    by: Mapping[str, Handler] | None = None


ONCE = Manner()
AT_ONCE = Manner(at_once=2)
AGAIN = Manner(again=True)

_ALWAYS = repeat(ONCE)


@dataclass(frozen=True)
class Batch:
    """What was handed over, which of it was to come again, and why it failed as a whole if so."""

    queue: str
    messages: Sequence[Mapping[str, Any]]
    failed: frozenset[str]
    error: str


class Mappings:
    """All mappings of an installation; may be fed from several threads."""

    def __init__(self, functions: Functions, endpoint: str) -> None:
        self._functions = functions
        self._endpoint = endpoint
        self.batches: list[Batch] = []

    def feed(self, *inboxes: str, manners: Iterator[Manner] = _ALWAYS) -> int:
        """Have each mapping, or those of inboxes, hand over one batch; count the messages.

        Each batch is handed over in the next one of the manners.
        """
        client = self._functions.borrow("", "lambda")
        found = client.list_event_source_mappings()["EventSourceMappings"]
        wanted = tuple(f"-{each}" for each in inboxes) or ""
        return sum(
            self._hand_over(each, manners)
            for each in found
            if each["State"] == "Enabled" and each["EventSourceArn"].endswith(wanted)
        )

    def publish_again(self, batches: Sequence[Batch]) -> None:
        """Have all messages come back that were handed over, as if AWS had kept them."""
        sqs = self._functions.borrow("", "sqs")
        for batch in batches:
            for each in batch.messages:
                shape = {
                    name: {"DataType": "String", "StringValue": value["StringValue"]}
                    for name, value in each.get("MessageAttributes", {}).items()
                }
                sqs.send_message(
                    QueueUrl=self._url(batch.queue),
                    MessageBody=each["Body"],
                    MessageAttributes=shape,
                )

    def _hand_over(self, mapping: Mapping[str, Any], manners: Iterator[Manner]) -> int:
        function, queue = mapping["FunctionArn"], mapping["EventSourceArn"]
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        sqs, url = self._as_role_of(function), self._url(queue)
        taken = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=min(mapping["BatchSize"], _BATCH),
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        if not taken:
            return 0
        manner = next(manners)
        batch = self._invoked(function, queue, taken, manner)
        self.batches.append(batch)
        for each in taken:
            if each["MessageId"] in batch.failed:
                continue
            if manner.again and each["Attributes"]["ApproximateReceiveCount"] == "1":
                sqs.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=each["ReceiptHandle"], VisibilityTimeout=0
                )
            else:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return len(taken)

    def _invoked(
        self, function: str, queue: str, taken: Sequence[Mapping[str, Any]], manner: Manner
    ) -> Batch:
        """Hand over a batch; of several who get it, what one has done is done."""
        names = frozenset(each["MessageId"] for each in taken)
        given = records(queue, taken)
        with ThreadPoolExecutor(manner.at_once) as threads:
            asked = [
                threads.submit(self._failed, self._handler(function, manner), given, names)
                for _ in range(manner.at_once)
            ]
            told = [each.result() for each in asked]
        failed = frozenset.intersection(*(failed for failed, _ in told))
        error = " ".join(error for _, error in told) if all(error for _, error in told) else ""
        return Batch(queue, taken, failed, error)

    def _handler(self, alias: str, manner: Manner) -> Handler:
        function = alias.rpartition(":")[0]
        if manner.by:
            return manner.by[function.rpartition("-")[2]]
        asked = f"{function}:{manner.version}" if manner.version else alias
        return lambda given, _: self._functions.call(asked, given)

    def _failed(
        self, handler: Handler, given: Mapping[str, Any], names: frozenset[str]
    ) -> tuple[frozenset[str], str]:
        try:
            answer = handler(given, None)
        except FailedError as error:
            return names, str(error)
        failed = frozenset(each["itemIdentifier"] for each in answer["batchItemFailures"])
        # An unknown name makes a failure of the whole batch.
        return (failed, "") if failed <= names else (names, "unknown names")

    def _url(self, queue: str) -> str:
        return f"{self._endpoint}/{queue.split(':')[4]}/{queue.rpartition(':')[2]}"

    def _as_role_of(self, function: str) -> Any:
        name, qualifier = function.rsplit(":", 2)[1:]
        told = self._functions.borrow("", "lambda").get_function_configuration(
            FunctionName=name, Qualifier=qualifier
        )
        return self._functions.borrow(told["Role"], "sqs")
