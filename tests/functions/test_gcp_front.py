"""The ingest function's requests, as functions-framework hands them over."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from bellhop.ingest import signatures
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.runtime.gcp.http import Front
from bellhop.state.record import Sender
from functions.ingest import gcp
from tests.functions.gcp_lab import BATCH, Project

EMPTY = json.dumps({**BATCH, "items": []})
LIMIT = 1_000
PATH = "/clusters/fleet/east"
KEY = signatures.new_key()


@pytest.fixture
def front(project: Project) -> Front:
    project.environment["BELLHOP_BODY_LIMIT"] = str(LIMIT)
    project.owner().register("east", {}, env="production")
    return Front(gcp._stage, project.open)


def ask(front: Front, path: str = PATH, body: str = EMPTY, **about: Any) -> tuple[int, Any]:
    """Send a request; return status and JSON."""
    headers = {"Authorization": "Bearer east", "Content-Type": "application/json"}
    headers |= about.pop("headers", {})
    options: dict[str, Any] = {"method": "POST", "data": body, "headers": headers, **about}
    told, status, found = front(Request(EnvironBuilder(path, **options).get_environ()))
    assert found["content-type"] == "application/json"
    return status, json.loads(told)


def test_takes_a_cloud_event(front: Front) -> None:
    """Its attributes come in headers, as in every home; here no source asks for it."""
    headers = {"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "ci", "Ce-Type": "built"}

    assert ask(front, body="x", headers=headers)[0] == 400
    assert ask(front, body="1", headers=headers) == (200, {"taken": 0, "dropped": 1})


def hear(front: Front, path: str = PATH, body: str = "1", **headers: str) -> tuple[int, Any]:
    """Send a request where Google lets in its own events alone; return status and JSON."""
    options: dict[str, Any] = {"method": "POST", "data": body, "headers": headers}
    told, status, _ = front.hear(Request(EnvironBuilder(path, **options).get_environ()))
    return status, json.loads(told)


EVENT = {"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "//storage", "Ce-Type": "finalized"}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        pytest.param(PATH, "1", EVENT, 200, id="an event"),
        pytest.param(PATH, "1", {**EVENT, "Ce-Time": "soon"}, 400, id="one that is none"),
        pytest.param(PATH, "x" * (LIMIT + 1), EVENT, 413, id="one that is too long"),
        pytest.param(PATH, EMPTY, {"Content-Type": "application/json"}, 403, id="no event"),
        pytest.param("/clusters/fleet/nowhere", "1", EVENT, 404, id="of no cluster"),
        pytest.param("/", "1", EVENT, 404, id="of no path"),
    ],
)
def test_hears_events_of_google(
    front: Front, path: str, body: str, headers: dict[str, str], status: int
) -> None:
    """The same limits as for all; no token is asked for, since who is let in has shown one."""
    assert hear(front, path, body, **headers)[0] == status


def test_hears_google_from_where_no_cluster_may_send(project: Project) -> None:
    """Addresses that are allowed are those of clusters."""
    project.environment["BELLHOP_INGEST_ALLOW"] = "203.0.113.0/24"
    project.owner().register("east", {}, env="production")
    front = Front(gcp._stage, project.open)

    assert hear(front, **EVENT) == (200, {"taken": 0, "dropped": 1})
    assert ask(front, headers={**EVENT, "X-Forwarded-For": "198.51.100.1"})[0] == 403


def test_takes_what_a_sender_from_outside_signs(front: Front, project: Project) -> None:
    """By the bytes that were sent, and once; its record and the note of it lie in Firestore."""
    records = project.open().records
    records.senders.put(Sender("fleet/east", "ci", datetime.now(UTC), signs=True, proof=KEY))
    body = json.dumps({"specversion": "1.0", "id": "1", "source": "ci", "type": "built"})
    at = int(datetime.now(UTC).timestamp())
    headers = {
        "Authorization": "",
        "Content-Type": STRUCTURED,
        "Webhook-Id": "msg",
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": signatures.sign(KEY, "msg", at, body.encode()),
    }

    told = [ask(front, f"{PATH}/senders/ci", body, headers=headers) for _ in range(2)]
    assert told[0] == (200, {"taken": 0, "dropped": 1})
    assert told[1][0] == 401
    assert ask(front, PATH, body, headers=headers)[0] == 401


def test_allows_who_asks_before_it_sends() -> None:
    """By the handshake of CloudEvents' web hooks, for which nothing is opened."""

    def unopened() -> Any:
        raise AssertionError

    front = Front(gcp._stage, unopened)
    headers = {"WebHook-Request-Origin": "ci.example", "WebHook-Request-Rate": "120"}
    environ = EnvironBuilder(f"{PATH}/senders/ci", method="OPTIONS", headers=headers).get_environ()
    _, status, told = front(Request(environ))

    assert (status, told["WebHook-Allowed-Origin"], told["WebHook-Allowed-Rate"]) == (200, "*", "*")


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        pytest.param({}, 200, "taken", id="a batch"),
        pytest.param({"path": "/clusters/fleet/ea%73t"}, 200, "taken", id="an escaped path"),
        pytest.param(
            {"path": f"{PATH}/east", "headers": {"Authorization": ""}}, 200, "taken", id="in a path"
        ),
        pytest.param({"path": "/"}, 404, "events go to /clusters", id="another path"),
        pytest.param({"method": "GET"}, 405, "by POST", id="another verb"),
        pytest.param({"method": "HEAD"}, 405, "by POST", id="a probe"),
        pytest.param({"headers": {"Authorization": ""}}, 401, "the token is not", id="no token"),
        pytest.param({"path": "/clusters/fleet/west"}, 401, "the token is not", id="a stranger"),
        pytest.param({"body": "x" * (LIMIT + 1)}, 413, f"{LIMIT + 1} bytes", id="too large"),
        pytest.param({"body": ""}, 400, "cannot", id="nothing"),
        pytest.param({"body": "{"}, 400, "cannot", id="no JSON"),
        pytest.param({"headers": {"Content-Type": "text/html"}}, 415, "not JSON", id="no media"),
    ],
)
def test_answers_as_anywhere(
    front: Front, changes: dict[str, Any], status: int, expected: str
) -> None:
    """The same statuses and sentences as those of the embedded front and of Lambda's."""
    found, body = ask(front, **changes)

    assert found == status
    assert expected in json.dumps(body)


def test_reads_no_body_of_whom_it_does_not_let_in(front: Front) -> None:
    """Nor one that says of itself that it is too large."""

    class Unread:
        def read(self, *_: Any) -> bytes:
            raise AssertionError

    for token, length, status in (("west", 2, 401), ("east", LIMIT + 1, 413)):
        environ = EnvironBuilder(PATH, method="POST").get_environ()
        environ["HTTP_AUTHORIZATION"] = f"Bearer {token}"
        environ["CONTENT_LENGTH"] = str(length)
        environ["wsgi.input"] = Unread()

        assert front(Request(environ))[1] == status


def test_a_body_without_length_is_bounded_as_well(front: Front) -> None:
    """Who sends in pieces is refused once all of it is there."""
    environ = EnvironBuilder(PATH, method="POST", data="x" * (LIMIT + 1)).get_environ()
    del environ["CONTENT_LENGTH"]
    environ["HTTP_AUTHORIZATION"] = "Bearer east"
    environ["wsgi.input_terminated"] = True

    assert front(Request(environ))[1] == 413


def test_takes_events_only_from_where_they_may_come(project: Project) -> None:
    """The last address is Google's word; what a sender has written before it does not count."""
    project.environment["BELLHOP_INGEST_ALLOW"] = "203.0.113.0/24, 2001:db8::/32"
    project.owner().register("east", {}, env="production")
    front = Front(gcp._stage, project.open)

    def status(addresses: str) -> int:
        return ask(front, headers={"X-Forwarded-For": addresses})[0]

    assert [status(each) for each in ("203.0.113.9", "2001:db8::7")] == [200, 200]
    assert status("198.51.100.1, 203.0.113.9") == 200
    assert status("203.0.113.9, 198.51.100.1") == 403
    # Somebody who calls past Google's front has the address of his connection.
    assert ask(front, environ_base={"REMOTE_ADDR": "203.0.113.9"})[0] == 200
    assert ask(front, environ_base={"REMOTE_ADDR": "127.0.0.1"})[0] == 403
    # What is no address is none from which anybody may send.
    assert [status(each) for each in ("somewhere", "203.0.113.9:80", "203.0.113.9, ,")] == [403] * 3


def test_is_healthy_without_asking_anybody() -> None:
    """A look at /healthz opens nothing."""

    def broken() -> Any:
        raise AssertionError

    request = Request(EnvironBuilder("/healthz").get_environ())
    assert Front(gcp._stage, broken)(request)[:2] == ("ok\n", 200)


@pytest.mark.parametrize("missing", ["BELLHOP_DATABASE", "BELLHOP_KEY_SECRET", "BELLHOP_TOPICS"])
def test_sends_away_until_it_can_be_opened(
    project: Project, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An installation that is not whole is an error for its operator, and 503 for a sender."""
    project.owner().register("east", {}, env="production")
    kept = project.environment.pop(missing)
    front = Front(gcp._stage, project.open)

    assert ask(front)[0] == 503
    assert caplog.messages == ["Cannot open the installation"]
    assert f"the variable {missing} is not set" in caplog.text
    project.environment[missing] = kept
    assert ask(front)[0] == 200
