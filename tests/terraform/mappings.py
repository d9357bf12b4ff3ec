"""Event source mappings as AWS has them, and what may go wrong with what they hand over.

    receive ─► invoke ─► it answers:          what it does not report as failed is deleted
                     └─► it fails as a whole: all of it is hidden until its visibility ends

Messages are received and deleted with the function's role, as Lambda does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.functions.lab import records

_BATCH = 10


class FailedError(Exception):
    """A function failed as a whole, or had no free instance; it has AWS' word for why."""


class Functions(Protocol):
    """What mappings ask of the cloud that has them."""

    def borrow(self, role: str, service: str) -> Any:
        """Return a client with the credentials of a role, the account's own for none."""
        ...

    def call(self, function: str, given: Any) -> Any:
        """Invoke a function."""
        ...


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

    def feed(self, *inboxes: str) -> int:
        """Have each mapping, or those of inboxes, hand over one batch; count the messages."""
        client = self._functions.borrow("", "lambda")
        found = client.list_event_source_mappings()["EventSourceMappings"]
        suffixes = tuple(f"-{each}" for each in inboxes) or ""
        return sum(
            self._hand_over(each)
            for each in found
            if each["State"] == "Enabled" and each["EventSourceArn"].endswith(suffixes)
        )

    def _hand_over(self, mapping: Mapping[str, Any]) -> int:
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
        failed, error = self._failed(function, queue, taken)
        self.batches.append(Batch(queue, taken, failed, error))
        for each in taken:
            if each["MessageId"] not in failed:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return len(taken)

    def _failed(
        self, function: str, queue: str, taken: Sequence[Mapping[str, Any]]
    ) -> tuple[frozenset[str], str]:
        names = frozenset(each["MessageId"] for each in taken)
        try:
            answer = self._functions.call(function, records(queue, taken))
        except FailedError as error:
            return names, str(error)
        failed = frozenset(each["itemIdentifier"] for each in answer["batchItemFailures"])
        # An unknown name makes a failure of the whole batch.
        return (failed, "") if failed <= names else (names, "unknown names")

    def _url(self, queue: str) -> str:
        return f"{self._endpoint}/{queue.split(':')[4]}/{queue.rpartition(':')[2]}"

    def _as_role_of(self, function: str) -> Any:
        name, qualifier = function.rsplit(":", 2)[1:]
        configuration = self._functions.borrow("", "lambda").get_function_configuration(
            FunctionName=name, Qualifier=qualifier
        )
        return self._functions.borrow(configuration["Role"], "sqs")
