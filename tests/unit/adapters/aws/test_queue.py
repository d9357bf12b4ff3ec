"""What SQS does to an inbox beyond the contract: batches, refusals, its own burials, its groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from bellhop.adapters.aws.queue import DEAD, SqsQueue
from bellhop.adapters.aws.services import Services
from bellhop.adapters.aws.sqs_messages import read_record
from bellhop.adapters.local.clock import SystemClock
from bellhop.errors import (
    BellhopError,
    InvalidError,
    MissingError,
    TemporaryError,
    ThrottledError,
    UnreachableError,
)
from bellhop.ports.queue import Again, Done, GivenUp, Message
from bellhop.state.messages import read
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

NOW = timedelta(0)
PATIENCE = timedelta(seconds=20)


@pytest.fixture
def services(moto: Moto) -> Iterator[Services]:
    made = Services(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
    yield made
    made.close()


@pytest.fixture
def sqs(services: Services) -> Any:
    """AWS' own client, for what Bellhop does not do itself."""
    return services.client("sqs")


@pytest.fixture
def url(sqs: Any) -> str:
    """The URL of a queue whose redrive is that of a message nobody reports on."""
    name = f"unit-{uuid4().hex[:8]}"
    dead = sqs.create_queue(QueueName=name + DEAD)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    policy = {"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": 4}
    attributes = {"RedrivePolicy": json.dumps(policy)}
    made: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return made


@pytest.fixture
def queue(services: Services, url: str) -> SqsQueue:
    return SqsQueue(services, url, clock=SystemClock(), attempts=2)


def numbers(queue: SqsQueue) -> list[int]:
    found = []
    while deliveries := queue.receive(10, wait=NOW):
        found += [each.message.body["n"] for each in deliveries]
    return sorted(found)


class Grudging(Services):
    """An SQS that does not take some entries of its first batches, and says so."""

    def __init__(self, moto: Moto, *refusals: Mapping[int, bool]) -> None:
        super().__init__(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
        self._refusals = list(refusals)
        self.batches: list[list[int]] = []

    def call(self, service: str, operation: str, request: Any, **options: Any) -> Any:
        if operation != "send_message_batch":
            return super().call(service, operation, request, **options)
        entries = request["Entries"]
        self.batches.append([json.loads(each["MessageBody"])["n"] for each in entries])
        refused = self._refusals.pop(0) if self._refusals else {}
        taken = [each for each in entries if int(each["Id"]) not in refused]
        if taken:
            super().call(service, operation, {**request, "Entries": taken}, **options)
        # In any order: SQS promises none.
        failed = [
            {"Id": str(number), "SenderFault": fault, "Code": "InternalError"}
            for number, fault in sorted(refused.items(), reverse=True)
        ]
        return {"Failed": failed}


def test_sends_ten_at_a_time(moto: Moto, queue: SqsQueue) -> None:
    """Of SQS's requests there are as few as can be."""
    before = moto.requests().get("sqs:SendMessageBatch", 0)
    queue.publish([Message({"n": n, "text": "x" * 60_000}, "g") for n in range(25)])

    assert moto.requests()["sqs:SendMessageBatch"] - before == 3
    assert numbers(queue) == list(range(25))


def test_sends_again_what_was_not_taken_and_nothing_else(moto: Moto, url: str) -> None:
    """Of a batch in part refused the rest goes out once more, in its order, and all of it comes."""
    grudging = Grudging(moto, {3: False, 1: False}, {0: False})
    queue = SqsQueue(grudging, url, clock=SystemClock())
    queue.publish([Message({"n": n}, "g") for n in range(12)])

    assert grudging.batches == [list(range(10)), [1, 3], [1], [10, 11]]
    assert numbers(queue) == list(range(12))


def test_says_that_sqs_goes_on_refusing(moto: Moto, url: str) -> None:
    """A temporary failure is reported as one in the end, and nothing behind it was sent."""
    grudging = Grudging(moto, *[{0: False}] * 9)
    queue = SqsQueue(grudging, url, clock=SystemClock())

    with pytest.raises(ThrottledError, match="SQS did not take 1 messages"):
        queue.publish([Message({"n": n}, "g") for n in range(12)])
    assert grudging.batches == [list(range(10)), [0], [0], [0]]


def test_tries_no_second_time_what_can_never_be_taken(moto: Moto, url: str) -> None:
    """A message that SQS calls ours to mend is an error at once."""
    grudging = Grudging(moto, {0: False, 1: True})
    queue = SqsQueue(grudging, url, clock=SystemClock())

    with pytest.raises(InvalidError, match="SQS says InternalError"):
        queue.publish([Message({"n": n}, "g") for n in range(2)])
    assert len(grudging.batches) == 1


def test_nothing_is_sent_of_what_has_a_message_that_is_none(queue: SqsQueue) -> None:
    """All are looked at before one goes out."""
    with pytest.raises(InvalidError):
        queue.publish([Message({"n": 1}, "g"), Message({"n": float("inf")}, "g")])

    assert numbers(queue) == []


def test_a_share_is_a_group_of_sqs(sqs: Any, url: str, queue: SqsQueue) -> None:
    """SQS gets group names in characters that it takes, and the original names come back."""
    queue.publish([Message({"n": 1}, "ours alone", "fleet/east<west ~"), Message({"n": 2}, "g")])
    found = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
    )["Messages"]
    groups = {each["Body"]: each.get("Attributes", {}).get("MessageGroupId") for each in found}

    assert groups == {'{"n":1}': "fleet/east<west_~", '{"n":2}': None}


def test_what_nobody_reports_on_is_buried_by_sqs(sqs: Any, url: str, queue: SqsQueue) -> None:
    """Such a dead letter says that its workers fell silent, and can be replayed."""
    queue.publish([Message({"n": 1}, "g", "fleet/east")])
    for _ in range(5):
        found = sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    assert "Messages" not in found

    [letter] = queue.list()
    assert letter.message == Message({"n": 1}, "g", "fleet/east")
    assert "fell silent" in letter.reason
    assert letter.attempts == 1
    assert letter.died_at <= datetime.now(UTC)
    queue.replay(letter.id)
    assert numbers(queue) == [1]


def test_killed_while_it_buries_it_loses_nothing(moto: Moto, url: str) -> None:
    """A dead letter is written before its message is deleted: there may be two, and never none."""

    class Dying(Services):
        def call(self, service: str, operation: str, request: Any, **options: Any) -> Any:
            if operation == "delete_message":
                raise KeyboardInterrupt
            return super().call(service, operation, request, **options)

    dying = Dying(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
    queue = SqsQueue(dying, url, clock=SystemClock(), visibility=timedelta(seconds=1))
    queue.publish([Message({"n": 1}, "g")])
    [delivery] = queue.receive(1, wait=NOW)
    with pytest.raises(KeyboardInterrupt):
        queue.settle(delivery, GivenUp("nobody foresaw it"))

    assert [letter.reason for letter in queue.list()] == ["nobody foresaw it"]
    assert [each.id for each in queue.receive(1, wait=PATIENCE)] == [delivery.id]


def test_what_was_published_again_is_settled(moto: Moto, url: str) -> None:
    """If SQS then fails to delete the message, Lambda does: else each failure would add a copy."""

    class Failing(Services):
        def call(self, service: str, operation: str, request: Any, **options: Any) -> Any:
            if operation == "delete_message":
                raise ThrottledError("SQS is busy")
            return super().call(service, operation, request, **options)

    failing = Failing(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
    queue = SqsQueue(failing, url, clock=SystemClock(), attempts=2)
    queue.publish([Message({"n": 1}, "g")])
    [delivery] = queue.receive(1, wait=NOW)

    assert queue.settle(delivery, Again(NOW, "busy")) == Again(NOW, "busy")
    [again] = queue.receive(1, wait=NOW)
    assert (again.attempt, again.deliveries) == (2, 1)


@pytest.mark.parametrize("text", ["x", "-5", "0", "9999999", "1.5"])
def test_an_attempt_that_somebody_wrote_by_hand_is_the_first(
    sqs: Any, url: str, queue: SqsQueue, text: str
) -> None:
    """A message whose attribute is no number ends as others do, and keeps none from its batch."""
    attribute = {"DataType": "String", "StringValue": text}
    sqs.send_message(QueueUrl=url, MessageBody="{}", MessageAttributes={"attempt": attribute})

    assert [each.attempt for each in queue.receive(1, wait=NOW)] == [1]


def test_dead_letters_that_somebody_looks_at_are_waited_for(
    sqs: Any, url: str, queue: SqsQueue
) -> None:
    """Two who look at once both see all there is."""
    queue.publish([Message({"n": 1}, "g"), Message({"n": 2}, "g")])
    for delivery in queue.receive(2, wait=NOW):
        queue.settle(delivery, GivenUp("no luck"))
    sqs.receive_message(QueueUrl=url + DEAD, VisibilityTimeout=2)

    assert sorted(each.message.body["n"] for each in queue.list()) == [1, 2]


def test_a_dead_letter_that_was_listed_is_there_for_others_at_once(
    sqs: Any, url: str, queue: SqsQueue
) -> None:
    """A consumer gives back each message that it looked at, also where it took none."""
    queue.publish([Message({"n": 1}, "g")])
    queue.settle(queue.receive(1, wait=NOW)[0], GivenUp("no luck"))
    with pytest.raises(MissingError):
        queue.drop("another")

    assert len(sqs.receive_message(QueueUrl=url + DEAD)["Messages"]) == 1


def test_a_reason_may_hold_what_sqs_does_not_take(queue: SqsQueue) -> None:
    """Control characters and half characters of a reason come through, and long ones are cut."""
    reason = "\x00 \x1b[1m \ud800 " + "x" * 5000
    queue.publish([Message({"n": 1, "text": "\x00\ud800"}, "g")])
    queue.settle(queue.receive(1, wait=NOW)[0], GivenUp(reason))

    [letter] = queue.list()
    assert letter.reason == reason[:2048]
    assert letter.message.body["text"] == "\x00\ud800"


@pytest.mark.parametrize("body", ["no JSON", "[1]", "7", '"text"', "[" * 5_000])
def test_what_somebody_sent_by_hand_is_no_message(
    sqs: Any, url: str, queue: SqsQueue, body: str
) -> None:
    """It is delivered, and no stage can read it, so that it ends among the dead letters."""
    sqs.send_message(QueueUrl=url, MessageBody=body)
    [delivery] = queue.receive(1, wait=NOW)
    with pytest.raises(InvalidError, match="there is no such message"):
        read(delivery.message.body)
    queue.settle(delivery, GivenUp("no such message"))

    [letter] = queue.list()
    assert letter.message.body["text"] == body[:2048]
    queue.replay(letter.id)
    assert len(queue.receive(1, wait=NOW)) == 1


def test_reads_records_of_lambda() -> None:
    """A record of a function's event is the delivery that a worker would have received."""
    delivery = read_record(
        {
            "messageId": "19dd0b57",
            "receiptHandle": "MessageReceiptHandle",
            "body": '{"do":"evaluate"}',
            "attributes": {"ApproximateReceiveCount": "3", "SentTimestamp": "1523232000000"},
            "messageAttributes": {
                "group": {
                    "stringValue": "a b",
                    "stringListValues": [],
                    "binaryListValues": [],
                    "dataType": "String",
                }
            },
        }
    )

    assert delivery.message == Message({"do": "evaluate"}, "a b")
    assert (delivery.id, delivery.receipt) == ("19dd0b57", "MessageReceiptHandle")
    assert (delivery.attempt, delivery.deliveries) == (1, 3)


def test_a_pause_is_never_beyond_what_sqs_takes(queue: SqsQueue) -> None:
    """A pause of days is one of hours: the message comes again, and is read again."""
    queue.publish([Message({"n": 1}, "g")])
    [delivery] = queue.receive(1, wait=NOW)
    again = Again(timedelta(days=3), "the cluster asks for it")

    assert queue.settle(delivery, again) == again


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        pytest.param("RequestThrottled", 400, ThrottledError, id="throttled"),
        pytest.param("", 0, UnreachableError, id="no answer"),
    ],
)
def test_what_fails_is_one_of_our_errors(
    moto: Moto, queue: SqsQueue, code: str, status: int, error: type[BellhopError]
) -> None:
    """Each operation's failure has a temperament, and names the queue and no payload."""
    moto.fail("sqs:SendMessageBatch", code=code, status=status, times=9)

    with pytest.raises(error, match="cannot publish to the queue 'unit-") as written:
        queue.publish([Message({"n": "payload"}, "g")])
    assert "payload" not in str(written.value)


def test_a_queue_that_is_not_there_may_come(services: Services, url: str) -> None:
    """No message is taken for finished because its queue is not made yet."""
    queue = SqsQueue(services, url + "-not", clock=SystemClock())

    for act in (lambda: queue.receive(1, wait=NOW), lambda: queue.publish([Message({}, "g")])):
        with pytest.raises(TemporaryError, match="apply Terraform again"):
            act()


def test_an_answer_that_was_lost_costs_a_repeat(moto: Moto, queue: SqsQueue) -> None:
    """Deleting twice is deleting, and giving back what was deleted is done."""
    queue.publish([Message({"n": 1}, "g")])
    [delivery] = queue.receive(1, wait=NOW)
    moto.fail("sqs:DeleteMessage", served=True)

    assert queue.settle(delivery, Done()) == Done()
    assert queue.settle(delivery, Done()) == Done()
    assert queue.settle(delivery, Again(NOW, "late")) == Done()
    assert not queue.extend(delivery)
