"""The ingest function, as a function URL, an HTTP API and a private API call it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bellhop.ingest import signatures
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.runtime.aws.http import Front
from bellhop.state.record import Sender
from functions.ingest import aws
from infra.lab.moto import Moto
from tests.functions.lab import Account, Context, User, event

EMPTY = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": []}
BATCH = json.dumps(EMPTY)
LIMIT = 1_000
PATH = "/clusters/fleet/east"
KEY = signatures.new_key()


@pytest.fixture
def account(moto: Moto) -> Any:
    one = Account(moto, body_limit=LIMIT)
    yield one
    one.close()


@pytest.fixture
def front(account: Account) -> Front:
    User(account).register("east", {}, env="production")
    return Front(aws._stage, account.open)


def ask(front: Front, name: str = "function_url", **changes: Any) -> tuple[int, Any]:
    """Send an event with another body, path, method or header; return status and JSON."""
    sent = event(name)
    sent["body"] = changes.pop("body", BATCH)
    sent["isBase64Encoded"] = changes.pop("encoded", False)
    path, method = changes.pop("path", PATH), changes.pop("method", "POST")
    if "http" in sent["requestContext"]:
        sent["rawPath"] = sent["requestContext"]["http"]["path"] = path
        sent["requestContext"]["http"]["method"] = method
        sent["headers"].update(changes)
    else:
        sent["path"], sent["httpMethod"] = path, method
        sent["headers"].update({key.title(): value for key, value in changes.items()})
    answer = front(sent, Context())
    assert set(answer) == {"statusCode", "headers", "body", "isBase64Encoded"}
    assert answer["isBase64Encoded"] is False
    return answer["statusCode"], json.loads(answer["body"])


@pytest.mark.parametrize("name", ["function_url", "http_api", "rest_api"])
@pytest.mark.parametrize("encoded", [False, True])
def test_takes_a_batch(front: Front, name: str, encoded: bool) -> None:  # noqa: FBT001 - a case
    """A body comes as text or in base64, as AWS thinks right."""
    body = base64.b64encode(BATCH.encode()).decode() if encoded else BATCH

    assert ask(front, name, body=body, encoded=encoded) == (200, {"taken": 0, "dropped": 0})


def test_takes_a_cloud_event(front: Front) -> None:
    """Its attributes come in headers, as in every home; here no source asks for it."""
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "ci", "ce-type": "built"}

    assert ask(front, body="x", **headers)[0] == 400
    assert ask(front, body="1", **headers) == (200, {"taken": 0, "dropped": 1})


def test_takes_what_a_sender_from_outside_signs(front: Front, account: Account) -> None:
    """By the bytes that were sent, however AWS hands them over, and once."""
    records = account.open().records
    records.senders.put(Sender("fleet/east", "ci", datetime.now(UTC), signs=True, proof=KEY))
    body = json.dumps({"specversion": "1.0", "id": "é", "source": "ci", "type": "built"})
    at = int(datetime.now(UTC).timestamp())
    for encoded in (False, True):
        name = f"msg-{encoded}"
        headers = {
            "content-type": STRUCTURED,
            "webhook-id": name,
            "webhook-timestamp": str(at),
            "webhook-signature": signatures.sign(KEY, name, at, body.encode()),
        }
        sent = base64.b64encode(body.encode()).decode() if encoded else body
        about = {"path": f"{PATH}/senders/ci", "body": sent, "encoded": encoded, **headers}

        assert ask(front, **about) == (200, {"taken": 0, "dropped": 1})
        assert ask(front, **about)[0] == 401
        assert ask(front, **{**about, "path": PATH})[0] == 200
        assert ask(front, **{**about, "path": PATH, "authorization": ""})[0] == 401


def test_allows_who_asks_before_it_sends(account: Account) -> None:
    """By the handshake of CloudEvents' web hooks; the installation is not opened for it."""
    front = Front(aws._stage, account.open)
    before = account.moto.requests()
    sent = event("function_url")
    sent["rawPath"] = f"{PATH}/senders/ci"
    sent["requestContext"]["http"]["method"] = "OPTIONS"
    sent["headers"]["webhook-request-origin"] = "ci.example"
    answer = front(sent, Context())

    assert answer["statusCode"] == 200
    assert answer["headers"]["WebHook-Allowed-Origin"] == "*"
    assert account.moto.requests() == before


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        pytest.param({"path": "/"}, 404, "events go to /clusters", id="another path"),
        pytest.param({"method": "GET"}, 405, "by POST", id="another verb"),
        pytest.param({"method": "HEAD"}, 405, "by POST", id="a probe"),
        pytest.param({"authorization": ""}, 401, "the token is not", id="no token"),
        pytest.param({"authorization": "Bearer west"}, 401, "the token is not", id="a stranger's"),
        pytest.param(
            {"path": "/clusters/fleet/west"}, 401, "the token is not", id="another cluster"
        ),
        pytest.param({"body": "x" * (LIMIT + 1)}, 413, f"the limit is {LIMIT}", id="too large"),
        pytest.param({"body": ""}, 400, "cannot", id="nothing"),
        pytest.param({"body": "{"}, 400, "cannot", id="no JSON"),
        pytest.param({"content-type": "text/html"}, 415, "not JSON", id="another media type"),
    ],
)
def test_refuses_as_the_embedded_front_does(
    front: Front, changes: dict[str, str], status: int, expected: str
) -> None:
    """What is refused has the status and the sentence that it has anywhere."""
    found, body = ask(front, **changes)

    assert found == status
    assert expected in body["error"]["message"]


def test_a_body_in_base64_is_as_long_as_what_it_holds(front: Front) -> None:
    """The limit is that of the bytes that were sent, and not of how AWS writes them."""
    padded = json.dumps(EMPTY).encode().ljust(LIMIT)

    assert ask(front, body=base64.b64encode(padded).decode(), encoded=True)[0] == 200


def test_takes_the_token_of_an_api_server_from_the_path(front: Front) -> None:
    """API servers send no header; what a path may not hold comes escaped."""
    assert ask(front, path="/clusters/fleet/ea%73t/east", authorization="")[0] == 200


def test_a_refused_request_is_two_reads_at_most(front: Front, account: Account) -> None:
    """How many of them a second the module lets in, for each execution, is computed from that."""
    strangers = ("", "Bearer wrong", "Bearer a.b.c")
    paths = (PATH, f"{PATH}/senders/ci", "/clusters/fleet/nobody")
    asked = [(path, token) for path in paths for token in strangers]

    def refuse() -> int:
        return sum(ask(front, path=path, authorization=token)[0] for path, token in asked)

    refuse()
    before = account.moto.requests()
    assert refuse() == 401 * len(asked)
    after = account.moto.requests()
    assert after["dynamodb:GetItem"] - before["dynamodb:GetItem"] <= 2 * len(asked)
    assert {**after, "dynamodb:GetItem": 0} == {**before, "dynamodb:GetItem": 0}


def test_says_who_was_refused_and_not_with_what(front: Front, account: Account) -> None:
    """The log has the sender's address, for an allow-list, and neither token nor body."""
    ask(front, authorization="Bearer secret-token", body="secret-body")

    [line] = [each for each in account.lines() if each["message"] == "Refused a request"]
    assert (line["severity"], line["cluster"], line["status"]) == ("WARNING", "fleet/east", 401)
    assert line["address"] == "203.0.113.7"
    assert "secret" not in account.output.getvalue()
    assert [each["Refused"] for each in account.lines() if "_aws" in each] == [1]


def test_is_healthy_without_asking_anybody(account: Account) -> None:
    """A look at /healthz opens nothing."""
    sent = event("function_url")
    sent["rawPath"] = "/healthz"
    before = account.moto.requests()
    answer = Front(aws._stage, account.open)(sent, Context())

    assert (answer["statusCode"], answer["body"]) == (200, "ok\n")
    assert account.moto.requests() == before


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


def test_a_private_api_says_from_where_in_the_network_a_request_comes(account: Account) -> None:
    """A range of the network lets its clusters in, and headers are read in any spelling."""
    User(account).register("east", {}, env="production")
    for allowed, status in (("10.20.0.0/16", 200), ("203.0.113.0/24", 403)):
        account.environment["BELLHOP_INGEST_ALLOW"] = allowed
        front = Front(aws._stage, account.open)
        assert ask(front, "rest_api")[0] == status
        assert ask(front, "rest_api", path="/")[0] == 404
        assert ask(front, "rest_api", method="GET")[0] == 405


def test_takes_events_only_from_where_they_may_come(moto: Moto) -> None:
    """The address is AWS' word; whoever is elsewhere is told nothing of clusters and tokens."""
    account = Account(moto)
    account.environment["BELLHOP_INGEST_ALLOW"] = "203.0.113.0/24, 2001:db8::/32"
    User(account).register("east", {}, env="production")
    front = Front(aws._stage, account.open)

    def status(address: str) -> int:
        sent = event("http_api")
        sent["body"], sent["isBase64Encoded"] = BATCH, False
        sent["requestContext"]["http"]["sourceIp"] = address
        answer: int = front(sent, Context())["statusCode"]
        return answer

    assert [status(each) for each in ("203.0.113.9", "2001:db8::7")] == [200, 200]
    assert [status(each) for each in ("203.0.114.1", "2001:db9::1", "")] == [403, 403, 403]
    assert any(each["message"] == "Refused an address" for each in account.lines())
    account.close()
