"""No error of AWS' or of its SDK's leaves the adapters unmapped, and none quotes what was sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import botocore.session
import pytest
from botocore import exceptions as sdk

from bellhop.adapters.aws.errors import CLASSES, CODES, code_of, translate
from bellhop.core.attempts import PASSING
from bellhop.errors import BellhopError, PermanentError, TemporaryError, ThrottledError

OPERATIONS = {
    "dynamodb": ["GetItem", "PutItem", "DeleteItem", "Query"],
    "s3": ["GetObject", "PutObject", "DeleteObject"],
    "secretsmanager": [
        *("CreateSecret", "DeleteSecret", "GetSecretValue", "ListSecrets", "PutSecretValue"),
        "RestoreSecret",
    ],
    "sqs": [
        *("ChangeMessageVisibility", "ChangeMessageVisibilityBatch", "DeleteMessage"),
        *("DeleteMessageBatch", "GetQueueAttributes", "ReceiveMessage", "SendMessage"),
        *("SendMessageBatch", "StartMessageMoveTask"),
    ],
    "ssm": ["DeleteParameter", "GetParameter", "GetParametersByPath", "PutParameter"],
    "cloudwatch": ["GetMetricStatistics"],
    "eks": ["DescribeCluster"],
    "logs": ["FilterLogEvents"],
    "sts": ["GetCallerIdentity"],
}
SDK_CLASSES = [
    each
    for each in vars(sdk).values()
    if isinstance(each, type) and issubclass(each, sdk.BotoCoreError)
]
DOING = "write the item 'a' 'b'"


def modelled() -> set[str]:
    """Read from the SDK's own model which errors the operations are declared to answer."""
    session = botocore.session.Session()
    return {
        shape.error_code
        for service, operations in OPERATIONS.items()
        for operation in operations
        for shape in session.get_service_model(service).operation_model(operation).error_shapes
    }


def answer(code: str, status: int = 400, **headers: str) -> sdk.ClientError:
    reported: Any = {
        "Error": {"Code": code, "Message": "words of AWS with 'secret'"},
        "ResponseMetadata": {
            "RequestId": "REQUEST",
            "HTTPStatusCode": status,
            "HTTPHeaders": headers,
        },
    }
    return sdk.ClientError(reported, "PutItem")


def test_the_model_lists_the_errors() -> None:
    """The enumeration finds what it should."""
    found = modelled()

    assert {"ConditionalCheckFailedException", "NoSuchKey", "QueueDoesNotExist"} <= found
    assert len(found) > 40


@pytest.mark.parametrize("code", sorted(modelled()))
def test_every_modelled_error_is_mapped(code: str) -> None:
    """What an operation is declared to answer has a row of its own."""
    assert code_of(answer(code)) in CODES


@pytest.mark.parametrize("code", [*sorted(CODES), "NeverHeardOf"])
def test_an_answer_becomes_one_sentence(code: str) -> None:
    """It says what was being done, names the request, and repeats no word of AWS'."""
    error = translate(answer(code), DOING)

    assert str(error).startswith("cannot write the item 'a' 'b': ")
    assert "secret" not in str(error)
    assert error.context["request"] == "REQUEST"
    assert error.context["reason"] == code


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("ThrottlingException", "Throttled", id="throttled"),
        pytest.param("com.amazonaws.dynamodb#ThrottlingException", "Throttled", id="name space"),
        pytest.param("KMS.ThrottlingException", "Throttled", id="KMS, by way of a service"),
        pytest.param("ConditionalCheckFailedException", "Stale", id="condition"),
        pytest.param("AWS.SimpleQueueService.NonExistentQueue", "Temporary", id="no queue"),
        pytest.param("TransactionConflictException", "Busy", id="another writer"),
        pytest.param("ValidationException", "Invalid", id="not taken"),
        pytest.param("AccessDeniedException", "CloudDenied", id="a right is missing"),
        pytest.param("ExpiredTokenException", "CloudDenied", id="expired"),
        pytest.param("ResourceNotFoundException", "Temporary", id="no table"),
        pytest.param("KmsDisabled", "Temporary", id="no key"),
    ],
)
def test_the_code_decides(code: str, expected: str) -> None:
    """What the installation lacks may pass; only what the request is refused for may not."""
    assert translate(answer(code), DOING).code == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((401, "CloudDenied"), (403, "CloudDenied"), (413, "TooLarge"), (418, "Temporary")),
        *((429, "Throttled"), (500, "Unreachable"), (503, "Unreachable"), (0, "Temporary")),
    ],
)
def test_the_status_decides_on_codes_that_nobody_knows(status: int, expected: str) -> None:
    """A code of a later day is taken by its status; none of them loses a message."""
    assert translate(answer("NeverHeardOf", status), DOING).code == expected


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7), ("", 2), ("soon", 2), ("999999999", 300), ("\u0667", 2)]
)
def test_a_throttled_request_gets_its_delay(header: str, seconds: int) -> None:
    """By AWS' own word where it has one, within reason."""
    error = translate(answer("ThrottlingException", **{"retry-after": header}), DOING)

    assert isinstance(error, ThrottledError)
    assert error.delay == timedelta(seconds=seconds)


@pytest.mark.parametrize("kind", SDK_CLASSES, ids=lambda kind: kind.__name__)
def test_maps_every_class_of_the_sdk(kind: type[Exception]) -> None:
    """Whatever the SDK raises is one sentence of ours, and loses no message unless it is wrong."""
    error = translate(kind.__new__(kind), DOING)

    assert str(error).startswith("cannot write the item 'a' 'b': ")
    assert isinstance(error, TemporaryError) or kind is sdk.ParamValidationError


@pytest.mark.parametrize("kind", SDK_CLASSES, ids=lambda kind: kind.__name__)
def test_tries_again_what_the_network_did(kind: type[Exception]) -> None:
    """A class that speaks of the line is not taken for a wrong setting."""
    words = ("Connect", "Timeout", "HTTPClient", "IncompleteRead", "Streaming", "SSLError")
    row = next(CLASSES[each] for each in kind.__mro__ if each in CLASSES)

    assert issubclass(row[0], PASSING) or not any(word in kind.__name__ for word in words)


def test_every_row_has_one_temperament() -> None:
    """No row is neither temporary nor permanent."""
    rows = [*CODES.values(), *CLASSES.values()]

    assert all(issubclass(kind, (PermanentError, TemporaryError)) for kind, _ in rows)
    assert all(issubclass(kind, BellhopError) and why for kind, why in rows)
