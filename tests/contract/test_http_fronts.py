"""One suite for every way in: Lambda behind its three APIs, functions-framework, and `serve`.

No cloud is asked here: behind each front is the ingest of one installation in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from flask import Request
from msgspec.structs import replace
from werkzeug.test import EnvironBuilder

from bellhop.errors import TemporaryError
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.gcp.http import Front as FrameworkFront
from bellhop.settings import Settings
from tests.contract.http_fronts import (
    ADDRESS,
    BATCH,
    EAST,
    FRONTS,
    FUNCTIONS,
    PATH,
    Ask,
    open_cloud,
)
from tests.fakes.fleet import Fleet
from tests.fakes.outsider import KEY, Outsider, known

LIMIT = 1_000
CI = f"{PATH}/senders/ci"
NO_TOKEN = {"authorization": ""}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation that knows one cluster, and takes small bodies only."""
    one = Fleet(tmp_path, Settings(body_limit=LIMIT))
    one.register("east", env="production")
    yield one
    one.close()


@pytest.fixture(params=FRONTS)
def ask(request: pytest.FixtureRequest, fleet: Fleet) -> Ask:
    """Each front in turn."""
    rig = FRONTS[request.param]
    return partial(rig.ask, rig.front(fleet, lambda: open_cloud(fleet)))


@pytest.fixture(params=FUNCTIONS)
def function(request: pytest.FixtureRequest) -> Any:
    """Each front of a function in turn, which opens the installation by its first request."""
    return FUNCTIONS[request.param]


def unopened() -> Resources:
    raise AssertionError


def test_takes_a_batch(ask: Ask) -> None:
    assert ask()[:2] == (200, {"taken": 0, "dropped": 0})


def test_takes_a_cloud_event(ask: Ask) -> None:
    """Its attributes come in headers; here no source asks for it."""
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "ci", "ce-type": "built"}

    assert ask(body="x", headers=headers).status == 400
    assert ask(body="1", headers=headers)[:2] == (200, {"taken": 0, "dropped": 1})


def test_takes_the_token_of_an_api_server_from_the_path(ask: Ask) -> None:
    """API servers send no header; characters that a path may not have are escaped."""
    path = "/clusters/fleet/ea%73t/east"

    assert ask(path, headers=NO_TOKEN).status == 200


def test_takes_what_an_outside_sender_signs_once(ask: Ask, fleet: Fleet) -> None:
    """The signature is that of the bytes that were sent."""
    known(fleet, signs=True)
    body = json.dumps({"specversion": "1.0", "id": "é", "source": "ci", "type": "built"})
    signed = Outsider(fleet, key=KEY).headers(body.encode())
    headers = {**NO_TOKEN, "content-type": STRUCTURED, **signed}

    assert ask(CI, f"{body} ", headers=headers).status == 401
    assert ask(CI, body, headers=headers)[:2] == (200, {"taken": 0, "dropped": 1})
    assert ask(CI, body, headers=headers).status == 401
    assert ask(PATH, body, headers=headers).status == 401
    assert ask(PATH, body, headers={**headers, "authorization": "Bearer east"}).status == 200


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        pytest.param({"path": "/"}, 404, "events go to /clusters", id="another path"),
        pytest.param({"method": "GET"}, 405, "by POST", id="another verb"),
        pytest.param({"headers": NO_TOKEN}, 401, "the token is not", id="no token"),
        pytest.param(
            {"headers": {"authorization": "Bearer west"}}, 401, "the token is not", id="another's"
        ),
        pytest.param({"path": "/clusters/fleet/west"}, 401, "the token is not", id="of no cluster"),
        pytest.param({"body": "x" * (LIMIT + 1)}, 413, f"the limit is {LIMIT}", id="too large"),
        pytest.param({"body": ""}, 400, "cannot", id="nothing"),
        pytest.param({"body": "{"}, 400, "cannot", id="no JSON"),
        pytest.param(
            {"headers": {"content-type": "text/html"}}, 415, "not JSON", id="another media type"
        ),
    ],
)
def test_refuses_with_a_status_and_a_sentence(
    ask: Ask, changes: dict[str, Any], status: int, expected: str
) -> None:
    answer = ask(**changes)

    assert answer.status == status
    assert expected in answer.body["error"]["message"]


def test_refuses_a_probe(ask: Ask) -> None:
    assert ask(method="HEAD").status == 405


def test_the_limit_is_that_of_the_bytes_that_were_sent(ask: Ask) -> None:
    """A cloud may write them longer."""
    assert ask(body=BATCH.ljust(LIMIT)).status == 200


def test_allows_a_sender_that_asks_first(function: Any, fleet: Fleet) -> None:
    """By the handshake of CloudEvents' webhooks, for which nothing is opened."""
    headers = {"webhook-request-origin": "ci.example", "webhook-request-rate": "120"}
    front = function.front(fleet, unopened)
    answer = function.ask(front, CI, method="OPTIONS", headers=headers)

    assert answer.status == 200
    assert answer.headers["webhook-allowed-origin"] == "*"
    assert answer.headers["webhook-allowed-rate"] == "*"


def test_is_healthy_without_opening_anything(function: Any, fleet: Fleet) -> None:
    front = function.front(fleet, unopened)

    assert function.ask(front, "/healthz", method="GET")[:2] == (200, "ok\n")


def test_logs_who_was_refused_and_not_with_what(function: Any, fleet: Fleet) -> None:
    """The log has the sender's address, for an allow-list, and neither token nor body."""
    front = function.front(fleet, lambda: open_cloud(fleet))
    function.ask(front, body="secret-body", headers={"authorization": "Bearer secret-token"})

    lines = [json.loads(line) for line in fleet.output.getvalue().splitlines()]
    [line] = [each for each in lines if each["message"] == "Refused a request"]
    assert (line["severity"], line["cluster"], line["status"]) == ("WARNING", "fleet/east", 401)
    assert line["address"] == ADDRESS
    assert "secret" not in fleet.output.getvalue()


def test_asks_for_another_try_until_it_can_be_opened(
    function: Any, fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    """What may pass is a warning, and an installation that is not whole an error."""
    failures: list[Exception] = [ValueError("a variable is not set"), TemporaryError("no key yet")]

    def opening() -> Resources:
        if failures:
            raise failures.pop()
        return open_cloud(fleet)

    front = function.front(fleet, opening)
    for _ in range(2):
        answer = function.ask(front)
        assert (answer.status, answer.body["error"]["code"]) == (503, "Temporary")
    assert [each.levelname for each in caplog.records] == ["WARNING", "ERROR"]
    assert function.ask(front).status == 200


def restricted(fleet: Fleet) -> Resources:
    """Return an installation that takes events from two ranges of addresses only."""
    ranges = tuple(map(ip_network, ("203.0.113.0/24", "2001:db8::/32")))
    return replace(open_cloud(fleet), ingest_allow=ranges)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("203.0.113.9", 200),
        ("2001:db8::7", 200),
        ("203.0.114.1", 403),
        ("2001:db9::1", 403),
        ("somewhere", 403),
    ],
)
def test_takes_events_only_from_allowed_addresses(
    function: Any, fleet: Fleet, address: str, status: int
) -> None:
    """Another address learns nothing of clusters and tokens."""
    front = function.front(fleet, lambda: restricted(fleet))

    assert function.ask(front, address=address).status == status
    assert ("Refused an address" in fleet.output.getvalue()) is (status == 403)
    assert function.ask(front, "/", address=address).status == 404
    assert function.ask(front, method="GET", address=address).status == 405


# Google Cloud ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addresses", "peer", "status"),
    [
        pytest.param("198.51.100.1, 203.0.113.9", "", 200, id="the last one is Google's word"),
        pytest.param("203.0.113.9, 198.51.100.1", "", 403, id="a sender may write the first"),
        pytest.param("", "203.0.113.9", 200, id="of a connection past Google's proxy"),
        pytest.param("", "127.0.0.1", 403, id="of another connection"),
        pytest.param("203.0.113.9:80", "", 403, id="a port"),
        pytest.param("203.0.113.9, ,", "", 403, id="none"),
    ],
)
def test_google_writes_the_last_of_the_forwarded_addresses(
    fleet: Fleet, addresses: str, peer: str, status: int
) -> None:
    front = FrameworkFront(lambda _: fleet.ingest, lambda: restricted(fleet))
    headers = {**EAST, **({"x-forwarded-for": addresses} if addresses else {})}
    environ = EnvironBuilder(PATH, method="POST", data=BATCH, headers=headers).get_environ()

    assert front(Request({**environ, "REMOTE_ADDR": peer}))[1] == status


def test_reads_no_body_of_an_unauthenticated_client(fleet: Fleet) -> None:
    """Nor one that says of itself that it is too large."""

    class Unread:
        def read(self, *_: Any) -> bytes:
            raise AssertionError

    front = FrameworkFront(lambda _: fleet.ingest, lambda: open_cloud(fleet))
    for token, length, status in (("west", 2, 401), ("east", LIMIT + 1, 413)):
        environ = EnvironBuilder(PATH, method="POST").get_environ()
        environ["HTTP_AUTHORIZATION"] = f"Bearer {token}"
        environ["CONTENT_LENGTH"] = str(length)
        environ["wsgi.input"] = Unread()

        assert front(Request(environ))[1] == status


def test_a_body_without_length_is_bounded_as_well(fleet: Fleet) -> None:
    """A body that comes in pieces is refused once all of it is there."""
    environ = EnvironBuilder(PATH, method="POST", data="x" * (LIMIT + 1)).get_environ()
    del environ["CONTENT_LENGTH"]
    environ["HTTP_AUTHORIZATION"] = "Bearer east"
    environ["wsgi.input_terminated"] = True
    front = FrameworkFront(lambda _: fleet.ingest, lambda: open_cloud(fleet))

    assert front(Request(environ))[1] == 413


EVENT = {"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "//storage", "Ce-Type": "finalized"}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        pytest.param(PATH, "1", EVENT, 200, id="an event"),
        pytest.param(PATH, "1", {**EVENT, "Ce-Time": "soon"}, 400, id="one that is none"),
        pytest.param(PATH, "x" * (LIMIT + 1), EVENT, 413, id="one that is too long"),
        pytest.param(PATH, BATCH, {"Content-Type": "application/json"}, 403, id="no event"),
        pytest.param("/clusters/fleet/nowhere", "1", EVENT, 404, id="of no cluster"),
        pytest.param("/", "1", EVENT, 404, id="of no path"),
    ],
)
def test_takes_events_of_google(
    fleet: Fleet, path: str, body: str, headers: dict[str, str], status: int
) -> None:
    """By the limits of all, from any address, and without a token: Eventarc has shown one."""
    front = FrameworkFront(lambda _: fleet.ingest, lambda: restricted(fleet))
    environ = EnvironBuilder(path, method="POST", data=body, headers=headers).get_environ()

    assert front.hear(Request(environ))[1] == status
