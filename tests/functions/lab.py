"""An installation on moto, and the Lambda service as far as functions can tell it from AWS'.

`Lambda.pump` does what event source mappings do: it takes batches, hands them over in exact
shapes, deletes what was not reported as failed, and leaves the rest to its visibility. Handlers
run in this process; scaling, throttling and memory are not played.
"""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bellhop.adapters.aws.queue import DEAD
from bellhop.adapters.aws.services import Services
from bellhop.core.address_policy import LOCAL
from bellhop.logs import Log
from bellhop.runtime.aws.batch import Batch
from bellhop.runtime.aws.http import Front
from bellhop.runtime.aws.installation import installation
from bellhop.runtime.aws.resources import Resources, open_resources
from bellhop.runtime.cloud.tick import Due, Ticker
from bellhop.state.messages import CHARTS, INBOXES
from tests.contract.rigs.aws import install
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.functions.owner import Owner, name_cluster
from tests.lab.lineages import ALLOW, MOST, counted
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto
from tests.waiting import eventually

EVENTS = Path(__file__).parent / "events"
BATCH = 10
TIMEOUT = 60.0
KEY, INGEST_KEY = bytes(range(32)), bytes(range(32, 64))
VISIBILITY = 30
FEEDS = {**INBOXES, CHARTS: CHARTS}
"""Each inbox, and the function that it feeds."""

SHARED = {"patient": "review", "status": "apply", "confirm": "sweep", "probe": "sweep"}
"""Inboxes that share another's queue in AWS. Here each has a queue, so that a test can look into
one inbox."""


RULES = join(
    source(more=", labelFilters: [{key: sveltos, operation: Equal, value: fv}]"),
    trigger(),
    holder("made", config(FOR_EACH), annotations=INSTANTIATE),
)


def event(name: str) -> dict[str, Any]:
    """Return a golden event."""
    found: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return found


class Context:
    """An invocation as Lambda reports it; each look at the clock takes as long as is said."""

    aws_request_id = "8f507cfc-xmpl-4697-b07a-ac58fc914c95"

    def __init__(self, seconds: float = TIMEOUT, *, each: float = 0.0) -> None:
        self._left = seconds
        self._each = each

    def get_remaining_time_in_millis(self) -> int:
        left = self._left
        self._left -= self._each
        return int(left * 1000)


class Account:
    """What Terraform would have made, under a name of its own, with `charts` or without."""

    def __init__(self, moto: Moto, *, charts: bool = False, **settings: object) -> None:
        inboxes = FEEDS if charts else INBOXES
        self.moto = moto
        self.services = Services(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
        self.name = install(moto.url).rpartition("/")[2]
        self.output = io.StringIO()
        self.environment = {
            "BELLHOP_TABLE": self.name,
            "BELLHOP_BUCKET": self.name,
            "BELLHOP_QUEUES": json.dumps({inbox: self._queue(inbox) for inbox in inboxes}),
            "BELLHOP_SECRETS": self.name,
            "BELLHOP_KEY_SECRET": f"{self.name}-key",
            "BELLHOP_INGEST_KEY_SECRET": f"{self.name}-ingest-key",
            "BELLHOP_INGEST_URL": "https://ingest.example",
            **{f"BELLHOP_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self._secret("key", KEY)
        self._secret("ingest-key", INGEST_KEY)

    def open(self) -> Resources:
        """Open the installation, as the first event of a process does; clusters are on loopback."""
        return open_resources(self.environment, self.services, Log(self.output), reach=LOCAL)

    def open_ingest(self) -> Resources:
        """Open the installation as ingest does, which has a key of its own."""
        own = {"BELLHOP_KEY_SECRET": f"{self.name}-ingest-key", "BELLHOP_INGEST_KEY_SECRET": ""}
        environment = {**self.environment, **own}
        return open_resources(environment, self.services, Log(self.output), reach=LOCAL)

    def lines(self) -> list[dict[str, Any]]:
        """Return what was logged."""
        return [json.loads(line) for line in self.output.getvalue().splitlines()]

    def close(self) -> None:
        self.services.close()

    def _queue(self, inbox: str) -> str:
        sqs, name = self._make("sqs"), f"{self.name}-{inbox}"
        dead = sqs.create_queue(QueueName=name + DEAD)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
        policy = {"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": 100}
        attributes = {
            "RedrivePolicy": json.dumps(policy),
            "VisibilityTimeout": str(VISIBILITY),
        }
        made: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return made

    def _secret(self, name: str, key: bytes) -> None:
        name = f"{self.name}-{name}"
        self._make("secretsmanager").create_secret(Name=name, SecretBinary=key)

    def _make(self, service: str) -> Any:
        return self.services.client(service)


class User(Owner):
    """The owner of an account's installation."""

    def __init__(self, account: Account) -> None:
        super().__init__(installation(account.open()))


Handler = Callable[[Mapping[str, Any], Any], dict[str, Any]]


class Lambda:
    """The functions of an account, each with the wiring of its module.

    By their recursion config they may feed themselves as often as they do. `refused` names the
    functions to which a batch was not handed over, and how long its chain was then.
    """

    def __init__(self, account: Account, *, recursion: str = ALLOW) -> None:
        self.account = account
        self.refused: list[tuple[str, int]] = []
        self._recursion = recursion
        self._sqs = account.services.client("sqs")
        self._urls: dict[str, str] = json.loads(account.environment["BELLHOP_QUEUES"])
        made = {stage: import_module(f"functions.{stage}.aws") for stage in set(FEEDS.values())}
        self.handlers: dict[str, Handler] = {
            stage: Batch(module._stage, account.open) for stage, module in made.items()
        }
        self.front = Front(import_module("functions.ingest.aws")._stage, account.open_ingest)
        self.tick = Ticker(Due, account.open)

    def send(
        self, cluster: str, body: Any, token: str = "", headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Have a cluster's sender send something, through the function's URL."""
        sent = event("function_url")
        path = f"/clusters/{name_cluster(cluster)}"
        sent["rawPath"] = sent["requestContext"]["http"]["path"] = path
        sent["headers"] |= {"authorization": f"Bearer {token or cluster}", **(headers or {})}
        sent["body"] = json.dumps(body)
        return self.front(sent, Context())

    def pump(self, *inboxes: str, until: Callable[[], object], patience: float = 60.0) -> None:
        """Feed the functions until something is so, of all inboxes or of some."""

        def step() -> object:
            done = until()
            if not done:
                for inbox in inboxes or self._urls:
                    self.feed(inbox, self.handlers[FEEDS[inbox]])
            return done

        eventually("the functions are done", step, patience=patience, pause=0)

    def feed(self, inbox: str, handler: Handler, context: Context | None = None) -> list[str]:
        """Hand over one batch of an inbox; return what was reported as failed."""
        taken = self._sqs.receive_message(
            QueueUrl=self._urls[inbox],
            MaxNumberOfMessages=BATCH,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        if not taken:
            return []
        trace, times = counted(FEEDS[inbox], (_trace(each) for each in taken))
        if times > MOST and self._recursion != ALLOW:
            self.refused.append((FEEDS[inbox], times))
            return [each["MessageId"] for each in taken]
        try:
            with _traced(FEEDS[inbox], trace):
                answer = handler(records(self._arn(inbox), taken), context or Context())
        except Exception:  # noqa: BLE001 - as Lambda has it: all of the batch comes again
            return [each["MessageId"] for each in taken]
        failed = [each["itemIdentifier"] for each in answer["batchItemFailures"]]
        # An unknown name makes a failure of the whole batch.
        assert set(failed) <= {each["MessageId"] for each in taken}
        for each in taken:
            if each["MessageId"] not in failed:
                self._sqs.delete_message(
                    QueueUrl=self._urls[inbox], ReceiptHandle=each["ReceiptHandle"]
                )
        return failed

    def _arn(self, inbox: str) -> str:
        arn: str = event("sqs")["Records"][0]["eventSourceARN"].rpartition(":")[0]
        return f"{arn}:{self._urls[inbox].rpartition('/')[2]}"


def _trace(message: Mapping[str, Any]) -> str:
    return str(message["Attributes"].get("AWSTraceHeader", ""))


@contextmanager
def _traced(function: str, trace: str) -> Iterator[None]:
    """Have the SDK send a trace header along, as it does in a function."""
    variables = {"AWS_LAMBDA_FUNCTION_NAME": function, "_X_AMZN_TRACE_ID": trace}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def records(arn: str, taken: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the event that a mapping makes of messages it has received from a queue."""
    golden = event("sqs")["Records"][0]
    shape = golden["messageAttributes"]["group"]
    found = []
    for each in taken:
        record = copy.deepcopy(golden)
        record["messageId"] = each["MessageId"]
        record["receiptHandle"] = each["ReceiptHandle"]
        record["body"] = each["Body"]
        record["attributes"] = each["Attributes"]
        record["messageAttributes"] = {
            name: {**shape, "stringValue": value["StringValue"]}
            for name, value in each.get("MessageAttributes", {}).items()
        }
        record["eventSourceARN"] = arn
        found.append(record)
    return {"Records": found}
