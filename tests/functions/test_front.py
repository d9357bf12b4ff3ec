"""The ingest functions where they ask a cloud: to open an installation, and for a request.

tests/contract/test_http_fronts.py has what they answer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from bellhop.runtime.aws.http import Front
from bellhop.runtime.gcp.http import Front as FrameworkFront
from functions.ingest import aws, gcp
from tests.functions.gcp_lab import BATCH, Project
from tests.functions.lab import Account, Context, User, event

EMPTY = {**BATCH, "items": []}
PATH = "/clusters/fleet/east"


@pytest.fixture
def front(account: Account) -> Front:
    User(account).register("east", {}, env="production")
    return Front(aws._stage, account.open)


def ask(front: Front, path: str = PATH, **headers: str) -> tuple[int, Any]:
    """Send an event of a function URL; return status and JSON."""
    sent = event("function_url")
    sent["rawPath"] = sent["requestContext"]["http"]["path"] = path
    sent["headers"].update(headers)
    sent["body"], sent["isBase64Encoded"] = json.dumps(EMPTY), False
    answer = front(sent, Context())
    return answer["statusCode"], json.loads(answer["body"])


def test_a_refused_request_is_two_reads_at_most(front: Front, account: Account) -> None:
    """How many of them a second the module lets in, for each execution, is computed from that."""
    unauthenticated = ("", "Bearer wrong", "Bearer a.b.c")
    paths = (PATH, f"{PATH}/senders/ci", "/clusters/fleet/nobody")
    asked = [(path, token) for path in paths for token in unauthenticated]

    def refuse() -> int:
        return sum(ask(front, path, authorization=token)[0] for path, token in asked)

    refuse()
    before = account.moto.requests()
    assert refuse() == 401 * len(asked)
    after = account.moto.requests()
    assert after["dynamodb:GetItem"] - before["dynamodb:GetItem"] <= 2 * len(asked)
    assert {**after, "dynamodb:GetItem": 0} == {**before, "dynamodb:GetItem": 0}


def test_a_refused_request_is_counted_in_a_metric(front: Front, account: Account) -> None:
    assert ask(front, authorization="Bearer wrong")[0] == 401
    assert [each["Refused"] for each in account.lines() if "_aws" in each] == [1]


def test_sends_away_until_it_can_be_opened(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """A key that cannot be read now is asked for again by the next request."""
    User(account).register("east", {}, env="production")
    fresh = Front(aws._stage, account.open)
    account.moto.fail("secretsmanager:GetSecretValue", code="AccessDeniedException", status=400)

    status, body = ask(fresh)
    assert (status, body["error"]["code"]) == (503, "Temporary")
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert ask(fresh)[0] == 200


def test_says_that_a_variable_is_missing(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """An installation that is not whole is an error for its operator, and 503 for a sender."""
    del account.environment["BELLHOP_TABLE"]

    assert ask(Front(aws._stage, account.open))[0] == 503
    assert caplog.messages == ["Cannot open the installation"]
    assert "the variable BELLHOP_TABLE is not set" in caplog.text


def test_takes_events_only_from_the_addresses_of_its_variable(account: Account) -> None:
    """AWS names the address in the network of a private API."""
    User(account).register("east", {}, env="production")
    sent = {**event("rest_api"), "body": json.dumps(EMPTY), "isBase64Encoded": False}
    for allowed, status in (("10.20.0.0/16", 200), ("203.0.113.0/24", 403)):
        account.environment["BELLHOP_INGEST_ALLOW"] = allowed

        assert Front(aws._stage, account.open)(sent, Context())["statusCode"] == status


@pytest.mark.parametrize("missing", ["BELLHOP_DATABASE", "BELLHOP_KEY_SECRET", "BELLHOP_TOPICS"])
def test_google_sends_away_until_it_can_be_opened(
    project: Project, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An installation that is not whole is an error for its operator, and 503 for a sender."""
    project.owner().register("east", {}, env="production")
    kept = project.environment.pop(missing)
    front = FrameworkFront(gcp._stage, project.open)

    assert send(front) == 503
    assert caplog.messages == ["Cannot open the installation"]
    assert f"the variable {missing} is not set" in caplog.text
    project.environment[missing] = kept
    assert send(front) == 200


def test_google_takes_events_only_from_the_addresses_of_its_variable(project: Project) -> None:
    project.owner().register("east", {}, env="production")
    project.environment["BELLHOP_INGEST_ALLOW"] = "203.0.113.0/24, 2001:db8::/32"
    front = FrameworkFront(gcp._stage, project.open)

    found = [send(front, **{"X-Forwarded-For": each}) for each in ("2001:db8::7", "198.51.100.1")]
    assert found == [200, 403]


def send(front: FrameworkFront, **headers: str) -> int:
    """Send a batch to Google's function; return the status."""
    about = {"Authorization": "Bearer east", "Content-Type": "application/json", **headers}
    builder = EnvironBuilder(PATH, method="POST", data=json.dumps(EMPTY), headers=about)
    return front(Request(builder.get_environ()))[1]
