"""The lab's AWS answers, counts its requests and fails on demand."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.lab.lineages import ALLOW, MOST, TERMINATE, counted
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto, pass_time

KEY = {"name": {"S": "counter"}}


@pytest.fixture
def table() -> str:
    return f"lab-{uuid4().hex[:8]}"


@pytest.fixture
def dynamodb(moto: Moto, table: str) -> Any:
    """A client that repeats nothing by itself, and a table for it."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=moto.url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(retries={"total_max_attempts": 1}),
    )
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
    )
    client.put_item(TableName=table, Item={**KEY, "count": {"N": "0"}})
    return client


def test_counts_the_requests_by_operation(moto: Moto, dynamodb: Any, table: str) -> None:
    """Each request counts once, also one that fails."""
    before = moto.requests()
    moto.fail("dynamodb:GetItem", status=400, code="ThrottlingException")
    for _ in range(3):
        with suppress(ClientError):
            dynamodb.get_item(TableName=table, Key=KEY)

    after = moto.requests()
    assert after["dynamodb:GetItem"] - before.get("dynamodb:GetItem", 0) == 3


def test_fails_by_the_configured_answer(moto: Moto, dynamodb: Any, table: str) -> None:
    """The next request fails, and the one after it does not."""
    moto.fail("dynamodb:PutItem", status=400, code="ThrottlingException")

    with pytest.raises(ClientError, match="ThrottlingException"):
        dynamodb.put_item(TableName=table, Item={**KEY, "count": {"N": "7"}})

    assert dynamodb.get_item(TableName=table, Key=KEY)["Item"]["count"] == {"N": "0"}
    dynamodb.put_item(TableName=table, Item={**KEY, "count": {"N": "7"}})


def test_loses_an_answer_to_what_it_has_done(moto: Moto, dynamodb: Any, table: str) -> None:
    """The write is there, and its caller did not learn so."""
    moto.fail("dynamodb:PutItem", served=True)

    with pytest.raises(ConnectionClosedError):
        dynamodb.put_item(TableName=table, Item={**KEY, "count": {"N": "7"}})

    assert dynamodb.get_item(TableName=table, Key=KEY)["Item"]["count"] == {"N": "7"}


def test_fails_only_for_one_role(moto: Moto, dynamodb: Any, table: str) -> None:
    """Others' requests are served; faults that never happened are listed when they are forgiven."""
    moto.fail("dynamodb:GetItem", status=400, code="ThrottlingException", role="nobody", times=2)

    assert dynamodb.get_item(TableName=table, Key=KEY)["Item"]["count"] == {"N": "0"}
    assert moto.forgive() == 2
    assert moto.forgive() == 0


def test_counts_the_writes_whose_condition_failed(moto: Moto, dynamodb: Any, table: str) -> None:
    """Where several write at once, somebody is refused."""
    before = moto.requests().get("dynamodb:conditions", 0)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        dynamodb.put_item(
            TableName=table,
            Item={**KEY, "count": {"N": "1"}},
            ConditionExpression="attribute_not_exists(#count)",
            ExpressionAttributeNames={"#count": "count"},
        )

    assert moto.requests()["dynamodb:conditions"] == before + 1


@pytest.fixture
def sqs(moto: Moto) -> Any:
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    return boto3.client("sqs", endpoint_url=moto.url, region_name=REGION, **keys)


def test_has_time_pass_for_what_is_hidden_for_long(moto: Moto, sqs: Any) -> None:
    """A message that somebody fell silent on comes again; one that rests for a moment does not."""
    url = sqs.create_queue(QueueName=f"lab-{uuid4().hex[:8]}")["QueueUrl"]
    for text, seconds in (("silent", 600), ("resting", 20)):
        sqs.send_message(QueueUrl=url, MessageBody=text)
        (taken,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=seconds)["Messages"]
        assert taken["Body"] == text
    moto.pass_visibility(30)
    (again,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]

    assert again["Body"] == "silent"


def test_has_time_pass_for_all_messages(moto: Moto, sqs: Any) -> None:
    """What is hidden or delayed for no longer than that is there, and what is for longer is not."""
    url = sqs.create_queue(QueueName=f"lab-{uuid4().hex[:8]}")["QueueUrl"]
    for text, seconds in (("hidden", 100), ("for longer", 300)):
        sqs.send_message(QueueUrl=url, MessageBody=text)
        sqs.receive_message(QueueUrl=url, VisibilityTimeout=seconds)
    sqs.send_message(QueueUrl=url, MessageBody="delayed", DelaySeconds=100)
    asked = {"QueueUrl": url, "MaxNumberOfMessages": 10}
    pass_time(moto.url, 50)
    assert "Messages" not in sqs.receive_message(**asked)
    pass_time(moto.url, 51)
    found = sqs.receive_message(**asked)["Messages"]

    assert sorted(each["Body"] for each in found) == ["delayed", "hidden"]


def test_delivers_messages_during_a_wait(sqs: Any) -> None:
    """What is sent, shown again or no longer delayed ends a wait; nothing ends one for nothing."""
    url = sqs.create_queue(QueueName=f"lab-{uuid4().hex[:8]}")["QueueUrl"]
    asked = {"QueueUrl": url, "WaitTimeSeconds": 20, "VisibilityTimeout": 600}
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(sqs.receive_message, **asked)
        sqs.send_message(QueueUrl=url, MessageBody="sent")
        (sent,) = waiting.result()["Messages"]
        waiting = threads.submit(sqs.receive_message, **asked)
        handle = {"QueueUrl": url, "ReceiptHandle": sent["ReceiptHandle"]}
        sqs.change_message_visibility(**handle, VisibilityTimeout=0)
        (shown,) = waiting.result()["Messages"]
        sqs.send_message(QueueUrl=url, MessageBody="delayed", DelaySeconds=1)
        (delayed,) = sqs.receive_message(**asked)["Messages"]
    begun = time.monotonic()
    none = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)

    assert [each["Body"] for each in (sent, shown, delayed)] == ["sent", "sent", "delayed"]
    assert "Messages" not in none
    assert time.monotonic() - begun >= 1


def test_reports_a_missing_queue_at_once(moto: Moto, sqs: Any) -> None:
    """Nobody waits for its messages."""
    begun = time.monotonic()
    with pytest.raises(ClientError, match="NonExistentQueue"):
        sqs.receive_message(QueueUrl=f"{moto.url}/123456789012/none", WaitTimeSeconds=20)

    assert time.monotonic() - begun < 15


def test_looks_and_writes_in_one_step(dynamodb: Any, table: str) -> None:
    """Of threads that write on one condition, one wins, each time."""
    won: list[int] = []

    def raise_to(number: int) -> None:
        with suppress(ClientError):
            dynamodb.put_item(
                TableName=table,
                Item={**KEY, "count": {"N": str(number)}},
                ConditionExpression="#count = :expected",
                ExpressionAttributeNames={"#count": "count"},
                ExpressionAttributeValues={":expected": {"N": str(number - 1)}},
            )
            won.append(number)

    for number in range(1, 21):
        threads = [threading.Thread(target=raise_to, args=(number,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert won == list(range(1, 21))


def test_refuses_a_function_s_seventeenth_invocation_in_a_chain(moto: Moto) -> None:
    """As long as its recursion config is what it is by default; the config is read back."""
    make = partial(
        boto3.client,
        endpoint_url=moto.url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    lambdas, name = make("lambda"), f"lab-{uuid4().hex[:8]}"
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    role = make("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    lambdas.create_function(
        FunctionName=name, Runtime="python3.13", Role=role, Handler="f.h", Code={"ZipFile": b"none"}
    )
    # Another function has its part in the chain, and botocore quotes what is between both.
    header, _ = counted("another", [])
    for _ in range(MOST):
        header, _ = counted(name, [quote(header, safe="-=;:")])
    event = json.dumps({"Records": [{"attributes": {"AWSTraceHeader": header}}]})

    assert lambdas.get_function_recursion_config(FunctionName=name)["RecursiveLoop"] == TERMINATE
    with pytest.raises(ClientError, match="RecursiveInvocationException"):
        lambdas.invoke(FunctionName=name, Payload=event)
    for config in (ALLOW, TERMINATE):
        lambdas.put_function_recursion_config(FunctionName=name, RecursiveLoop=config)
        assert lambdas.get_function_recursion_config(FunctionName=name)["RecursiveLoop"] == config
