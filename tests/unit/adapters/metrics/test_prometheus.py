"""Prometheus: one number a query, credentials for nobody else, and no word of what it answers."""

from __future__ import annotations

import base64
import ssl
from http import HTTPStatus
from pathlib import Path

import pytest

from bellhop.adapters.metrics import Prometheus
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import BellhopError, DeniedError, InvalidError, UnreachableError
from bellhop.ports.metrics import ANONYMOUS, Credentials
from infra.lab.certificates import write_certificates
from infra.lab.port import free_port
from tests.fakes.prometheus import FakePrometheus, Series, one
from tests.lab.http_server import Response

PATH = "/api/v1/query"
BEARER = Credentials(token="hunter2")
BASIC = Credentials(username="ann", password="hunter2")


def ask(server: FakePrometheus, query: str, given: Credentials = ANONYMOUS) -> float | None:
    found = Prometheus(LOCAL).query(f"{server.address}{PATH}", {"it": query}, given, 10)
    return found.get("it")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        pytest.param("0.25", 0.25, id="scalar"),
        pytest.param(one("3"), 3.0, id="one series"),
        pytest.param([({"pod": "web"}, "7")], 7.0, id="one series with labels"),
        pytest.param(one("+Inf"), float("inf"), id="infinite"),
        pytest.param(one("NaN"), None, id="nothing divided by nothing"),
        pytest.param([], None, id="no series"),
    ],
)
def test_finds_a_number(value: str | Series, number: float | None) -> None:
    """What has no number is left out."""
    with FakePrometheus() as server:
        server.values["up"] = value
        assert ask(server, "up") == number


def test_asks_each_query_as_it_is_written() -> None:
    """Braces, quotes and operators arrive, whatever else the URL has."""
    query = 'sum(rate(errors{job="a&b", path=~"/x.+"}[5m])) > 0'
    with FakePrometheus() as server:
        server.values[query] = one("1")
        url = f"{server.address}{PATH}?tenant=a"
        found = Prometheus(LOCAL).query(url, {"one": query, "two": "up"}, ANONYMOUS, 10)
        assert found == {"one": 1.0}
        assert server.asked == [query, "up"]


@pytest.mark.parametrize(
    ("given", "header"),
    [
        (BEARER, "Bearer hunter2"),
        (BASIC, f"Basic {base64.b64encode(b'ann:hunter2').decode()}"),
    ],
)
def test_signs_in(given: Credentials, header: str) -> None:
    """By a token, or by a name and a password."""
    with FakePrometheus(authorization=header) as server:
        server.values["up"] = "1"
        assert ask(server, "up", given) == 1
        with pytest.raises(DeniedError, match="it answers 401; see whether the Secret"):
            ask(server, "up")


def said(server: FakePrometheus, query: str = "up") -> str:
    with pytest.raises(BellhopError) as raised:
        ask(server, query, BEARER)
    return str(raised.value).replace(server.address, "http://prom")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("sum(up", "it answers 400 (bad_data); see whether the query is right"),
        ("up[5m]", "the query gives no number; select an instant, and not a range"),
        ("many", "the query finds 3 series; aggregate them, as sum() does"),
    ],
)
def test_refuses_what_is_no_number(query: str, message: str) -> None:
    """One sentence says which query, where, and what to do."""
    with FakePrometheus() as server:
        server.values["many"] = [({"pod": each}, "1") for each in "abc"]
        assert said(server, query) == f"cannot query metric 'it' at 'http://prom{PATH}': {message}"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(
            Response.of(503, {"errorType": "unavailable", "error": "Bearer hunter2"}),
            "it answers 503 (unavailable)",
            id="not now",
        ),
        pytest.param(
            Response.of(400, {"errorType": "Bearer hunter2"}),
            "it answers 400; see whether the query is right",
            id="its own word",
        ),
        pytest.param(
            Response(HTTPStatus.OK, b"<html>Bearer hunter2</html>"),
            "its answer is not one of Prometheus; see the URL and the path",
            id="another page",
        ),
        pytest.param(
            Response.of(200, {"data": {"resultType": "scalar", "result": [1, "hunter2"]}}),
            "its answer is not one of Prometheus; see the URL and the path",
            id="a number that is none",
        ),
        pytest.param(
            Response.of(200, {"data": ["hunter2"]}),
            "its answer is not one of Prometheus; see the URL and the path",
            id="another shape",
        ),
        pytest.param(
            Response(HTTPStatus.OK, b"[" * 100_000),
            "its answer is not one of Prometheus; see the URL and the path",
            id="nested without end",
        ),
    ],
)
def test_quotes_no_answer(reply: Response, message: str) -> None:
    """A server may send back what it was given."""
    with FakePrometheus() as server:
        server.reply = reply
        assert said(server) == f"cannot query metric 'it' at 'http://prom{PATH}': {message}"


def test_takes_no_answer_without_end() -> None:
    """One number needs no megabyte."""
    with FakePrometheus() as server:
        server.reply = Response(HTTPStatus.OK, b"1" * ((1 << 20) + 1))
        where = f"'http://prom{PATH}'"
        message = f"cannot query metric 'it': cannot download {where}: the answer has more than"
        assert said(server).startswith(message)


def test_says_that_nobody_answers() -> None:
    """A server that is not there is named, without the query."""
    url = f"http://127.0.0.1:{free_port()}{PATH}"
    with pytest.raises(
        UnreachableError,
        match=f"cannot download '{url}': the connection is refused or has no route",
    ):
        Prometheus(LOCAL).query(url, {"it": "up"}, ANONYMOUS, 10)


def test_all_queries_together_have_one_deadline() -> None:
    """Without any time left nothing is asked."""
    with FakePrometheus() as server, pytest.raises(UnreachableError, match="there is no time left"):
        Prometheus(LOCAL).query(f"{server.address}{PATH}", {"it": "up"}, ANONYMOUS, 0)
    assert server.asked == []


def test_no_public_address_leads_to_the_machine() -> None:
    """A function's own runtime, and the server of a cloud's credentials, are no metrics."""
    for host in ("127.0.0.1", "169.254.169.254", "metadata.google.internal"):
        with pytest.raises(InvalidError, match="nothing is called there"):
            Prometheus(PUBLIC).query(f"http://{host}{PATH}", {"it": "up"}, ANONYMOUS, 10)


def test_sends_credentials_only_by_tls() -> None:
    """In a public network somebody may listen."""
    with pytest.raises(InvalidError, match="credentials are only sent to an https:// address"):
        Prometheus(PUBLIC).query(f"http://prom.example{PATH}", {"it": "up"}, BEARER, 10)


@pytest.mark.parametrize("given", [ANONYMOUS, BEARER])
@pytest.mark.parametrize("url", ["https://[::1", "https://\u2100/"])
def test_says_that_an_address_is_none(url: str, given: Credentials) -> None:
    """A label of a cluster may be part of it, and is whatever somebody wrote."""
    with pytest.raises(InvalidError, match="cannot query metric 'it' at an invalid address"):
        Prometheus(PUBLIC).query(url, {"it": "up"}, given, 10)


def test_trusts_the_authority_that_it_is_given(tmp_path: Path) -> None:
    """A server of one's own has a certificate that no system knows."""
    authority = write_certificates(tmp_path, "prom", ("127.0.0.1",))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    with FakePrometheus(tls=tls) as server:
        server.values["up"] = "1"
        assert ask(server, "up", Credentials(authority=authority)) == 1
        with pytest.raises(UnreachableError, match="TLS failed: its certificate is not trusted"):
            ask(server, "up")


def test_shows_no_credentials() -> None:
    """Neither a traceback nor a failed assertion shows them."""
    assert "hunter2" not in repr((BEARER, BASIC))
