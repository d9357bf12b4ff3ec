"""AWS on this machine: the real handlers, and a moto server that counts its requests.

What DynamoDB would charge is reckoned from the sizes of the items.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.state.messages import INBOXES
from tests.benchmarks.clouds.play import SOURCE, Play
from tests.functions.lab import Account, Context, Lambda, User, event
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

_READ, _WRITTEN = 4096, 1024


class MeteredServices(Services):
    """Services that note what DynamoDB would charge for each request."""

    def __init__(self, moto: Moto) -> None:
        super().__init__(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
        self.units: Counter[str] = Counter(read=0, written=0)

    def call(self, service: str, operation: str, request: Any, **how: Any) -> dict[str, Any]:
        asked: list[Mapping[str, Any]] = []

        def noted() -> Mapping[str, Any]:
            asked.append(request() if callable(request) else request)
            return asked[-1]

        answer: Mapping[str, Any] = {}
        try:
            answer = super().call(service, operation, noted, **how)
        except RefusedError as refused:
            answer = refused.answer
            raise
        finally:
            if service == "dynamodb":
                self._meter(operation, asked, answer)
        return dict(answer)

    def _meter(
        self, operation: str, asked: list[Mapping[str, Any]], answered: Mapping[str, Any]
    ) -> None:
        match operation:
            case "get_item":
                self.units["read"] += _units(answered.get("Item", {}), _READ)
            case "query":
                size = sum(_size(each) for each in answered.get("Items", ()))
                self.units["read"] += max(1, -(-size // _READ))
            case "put_item":
                self.units["written"] += sum(_units(each["Item"], _WRITTEN) for each in asked)
            case "delete_item":
                deleted = answered.get("Attributes", answered.get("Item", {}))
                self.units["written"] += _units(deleted, _WRITTEN)


def _units(item: Mapping[str, Any], unit: int) -> int:
    return max(1, -(-_size(item) // unit))


def _size(item: Mapping[str, Any]) -> int:
    """Return about how many bytes DynamoDB takes an item for: names and values."""
    return sum(len(name) + len(str(*value.values())) for name, value in item.items())


class AwsPlay(Play):
    """An installation on moto."""

    def __init__(self, moto: Moto, kubeconfig: Mapping[str, Any]) -> None:
        self._moto = moto
        self.account = Account(moto)
        self.account.services = self._services = MeteredServices(moto)
        super().__init__(User(self.account), kubeconfig)
        self._urls = json.loads(self.account.environment["BELLHOP_QUEUES"])
        self.wake()

    def wake(self) -> None:
        """Start all functions cold."""
        self.functions = Lambda(self.account)

    def send(self, body: Any) -> int:
        """Have the source's sender send something."""
        return int(self.functions.send(SOURCE, body)["statusCode"])

    def tick(self) -> None:
        """Have the schedule look."""
        self.functions.tick(event("scheduler"), Context())

    def feed(self, noting: Callable[[str, Callable[[], Any]], Any]) -> bool:
        """Feed each function with a batch of what waits for it."""
        if not self._waiting():
            return False
        for inbox, stage in INBOXES.items():
            handler = self.functions.handlers[stage]
            self.functions.feed(
                inbox,
                lambda taken, context, stage=stage, to=handler: noting(
                    stage, lambda: to(taken, context)
                ),
            )
        return True

    def asked(self) -> Counter[str]:
        """Count all requests until now."""
        return Counter(self._moto.requests())

    def units(self) -> Counter[str]:
        """Count what DynamoDB takes money for."""
        return Counter(self._services.units)

    def _waiting(self) -> int:
        """Return the number of messages, in flight or not."""
        sqs, kinds = self._services.client("sqs"), ("", "NotVisible", "Delayed")
        names = [f"ApproximateNumberOfMessages{kind}" for kind in kinds]
        return sum(
            int(each)
            for url in self._urls.values()
            for each in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)[
                "Attributes"
            ].values()
        )

    def close(self) -> None:
        """Close the connections."""
        self.account.close()
