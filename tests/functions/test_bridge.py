"""Events of AWS, as rules of EventBridge write them into the queue that feeds ingest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bellhop.core.gvk import CLOUD_EVENT
from bellhop.errors import InvalidError
from bellhop.runtime.aws.http import Front, cloud_event, read_request
from functions.ingest import aws
from tests.functions.lab import Account, Context, User, event, records
from tests.lab.moto import Moto

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:bellhop-events"
LIMIT = 2_000
DECLARED = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: images}
spec:
  messagingMatchCriteria:
  - cloudEventSource: ^aws\\.ecr$
    cloudEventType: ^ECR Image Action$
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: announce}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: images
  oneForEvent: true
"""


@pytest.fixture
def account(moto: Moto) -> Iterator[Account]:
    one = Account(moto, body_limit=LIMIT)
    yield one
    one.close()


@pytest.fixture
def front(account: Account) -> Front:
    user = User(account)
    user.register("east", {}, env="production")
    user.apply(DECLARED)
    return Front(aws._stage, account.open)


def happened(**changes: Any) -> dict[str, Any]:
    return {**event("eventbridge"), **changes}


def written(found: Any, cluster: Any = "fleet/east", subject: str = "") -> str:
    """Return what a rule's target writes."""
    return json.dumps({"cluster": cluster, "subject": subject, "event": found})


def hand(front: Front, *bodies: str) -> list[int]:
    """Hand over messages of the queue; return the numbers of those that are to come again."""
    taken = [
        {"MessageId": str(number), "ReceiptHandle": "r", "Body": body, "Attributes": {}}
        for number, body in enumerate(bodies)
    ]
    answer = front(records(QUEUE, taken), Context())
    return [int(each["itemIdentifier"]) for each in answer["batchItemFailures"]]


def kept(account: Account) -> list[dict[str, Any]]:
    """Return the CloudEvents of the cluster that are kept."""
    found = account.open().records.observations.of("fleet/east", CLOUD_EVENT)
    return [dict(each.manifest["event"]) for each in found]


def test_an_event_of_aws_is_a_cloud_event() -> None:
    """Its own fields become attributes, its detail the data."""
    assert cloud_event(happened(), "detail.repository-name") == {
        "specversion": "1.0",
        "id": "13cde686-328b-6117-af20-0e5566167482",
        "source": "aws.ecr",
        "type": "ECR Image Action",
        "subject": "shop/web",
        "time": "2026-01-31T12:00:00Z",
        "account": "123456789012",
        "region": "eu-west-1",
        "datacontenttype": "application/json",
        "data": event("eventbridge")["detail"],
    }


@pytest.mark.parametrize(
    ("path", "resources", "subject"),
    [
        pytest.param("", ["arn:aws:s3:::shop", "other"], "arn:aws:s3:::shop", id="none is said"),
        pytest.param("", [], None, id="nor is there a resource"),
        pytest.param("", "arn:aws:s3:::shop", None, id="resources that are none"),
        pytest.param("detail.result", ["one"], "SUCCESS", id="where the rule says"),
        pytest.param("detail.nothing", ["one"], "one", id="nothing is there"),
        pytest.param("detail", ["one"], "one", id="no text is there"),
        pytest.param("detail.result.deeper", ["one"], "one", id="below a text"),
        pytest.param("id", [], "13cde686-328b-6117-af20-0e5566167482", id="of the event itself"),
    ],
)
def test_a_subject_is_what_the_rule_says(path: str, resources: Any, subject: str | None) -> None:
    """Or else the first resource, of which an event of AWS has any number."""
    assert cloud_event(happened(resources=resources), path).get("subject") == subject


@pytest.mark.parametrize("body", ["", "[]", "{}", written(7), written({}, cluster=None)])
def test_an_event_that_no_rule_wrote_is_logged(body: str) -> None:
    """One sentence, that quotes nothing of it."""
    with pytest.raises(InvalidError, match=r"^cannot read "):
        read_request(body)


def test_a_batch_is_taken_message_by_message(front: Front, account: Account) -> None:
    """What some source takes is kept, once however often it comes; what none takes goes."""
    other = happened(id="2", source="aws.s3")
    bodies = [written(happened()), written(happened()), written(other)]
    assert hand(front, *bodies) == []
    assert hand(front, bodies[0]) == []

    assert [each["source"] for each in kept(account)] == ["aws.ecr"]


def test_only_a_refused_event_comes_again(front: Front, account: Account) -> None:
    """A cluster that is not there, an event that is none, one too large: each is logged."""
    bad = [
        written(happened(), cluster="fleet/nowhere"),
        written(happened(time="soon")),
        written({"detail": {}}),
        written(happened(detail={"text": "x" * LIMIT})),
        written(happened(), cluster="../../x"),
        "no JSON",
    ]
    assert hand(front, *bad, written(happened())) == [0, 1, 2, 3, 4, 5]

    assert len(kept(account)) == 1
    whys = [line["why"] for line in account.lines() if line["message"] == "Refused an event of AWS"]
    assert "cluster 'fleet/nowhere': it is not registered" in whys[0]
    assert "its time is not in the form of RFC 3339" in whys[1]
    assert "it has no id" in whys[2]
    assert f"the limit is {LIMIT}" in whys[3]
    assert len(whys) == len(bad)


def test_all_come_again_where_nothing_can_be_opened() -> None:
    """Nothing is taken of a batch whose function does not get ready."""

    def broken() -> Any:
        raise OSError("no store")

    front = Front(aws._stage, broken)

    assert hand(front, written(happened()), written(happened(id="2"))) == [0, 1]


def test_who_calls_by_http_is_no_queue(front: Front, account: Account) -> None:
    """A body that looks like a batch is a body: it is checked by its token as any."""
    sent = event("http_api")
    sent["rawPath"] = sent["requestContext"]["http"]["path"] = "/clusters/fleet/east"
    sent["body"] = json.dumps(records(QUEUE, []))
    sent["headers"] |= {"authorization": "Bearer none"}

    assert front(sent, Context())["statusCode"] == 401
    assert kept(account) == []
