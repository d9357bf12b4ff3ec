"""The HTTP function behind TLS, as senders meet it."""

from __future__ import annotations

import hashlib
import io
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest
import urllib3

from bellhop.logs import Log
from bellhop.runtime.embedded import serve as serving
from bellhop.runtime.embedded.serve import running
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from infra.lab.port import free_port

LIMIT = 100_000
TOKEN = hashlib.sha256(b"east").hexdigest()
EAST = Cluster("fleet", "east", {}, "v1.20.2", TOKEN, datetime.now(UTC))


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[tuple[urllib3.PoolManager, str]]:
    """Serve an installation that knows one cluster, `fleet/east` with the token `east`."""
    opened = open_state(tmp_path / "state", Settings())
    opened.installation.declare.register(EAST)
    opened.close()
    settings = Settings(body_limit=LIMIT)
    with running(tmp_path / "state", settings, Log(io.StringIO()), "127.0.0.1", 0) as url:
        authority = json.loads((tmp_path / "state" / "address.json").read_text())["ca"]
        pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=authority))
        yield pool, url
        pool.clear()


def sentence(answer: urllib3.BaseHTTPResponse) -> str:
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "expected"),
    [
        pytest.param("GET", "/", None, 404, "events go to /clusters", id="another path"),
        pytest.param(
            "POST",
            "/clusters/fleet/east/stranger",
            "x" * (LIMIT + 1),
            401,
            "the token is not the one of cluster 'fleet/east'",
            id="too large from an unauthenticated client",
        ),
        pytest.param(
            "POST",
            "/clusters/fleet/east/east",
            "x" * (LIMIT + 1),
            413,
            f"the limit is {LIMIT}",
            id="too large",
        ),
    ],
)
def test_answers_bad_requests_with_a_sentence(
    ingest: tuple[urllib3.PoolManager, str],
    method: str,
    path: str,
    body: Any,
    status: int,
    expected: str,
) -> None:
    """Each mistake has its status and its sentence, and the next request is served."""
    pool, url = ingest

    answer = pool.request(method, url + path, body=body, retries=False)

    assert answer.status == status
    assert expected in sentence(answer)
    assert pool.request("GET", f"{url}/healthz").data == b"ok\n"


def test_refuses_a_large_body_that_was_not_announced(
    ingest: tuple[urllib3.PoolManager, str],
) -> None:
    """A chunked request is cut off at the limit."""
    pool, url = ingest
    chunks = (b"x" * 10_000 for _ in range(11))

    answer = pool.request(
        "POST", f"{url}/clusters/fleet/east/east", body=chunks, chunked=True, retries=False
    )

    assert answer.status == 413


def test_answers_an_admission_review(ingest: tuple[urllib3.PoolManager, str]) -> None:
    """An API server gets its answer, whatever the object is."""
    pool, url = ingest
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": "CREATE"},
    }

    answer = pool.request("POST", f"{url}/clusters/fleet/east/east?timeout=2s", json=review)

    assert answer.status == 200
    assert answer.json()["response"] == {"uid": "u-1", "allowed": True}


def test_is_known_by_the_name_that_it_advertises(tmp_path: Path) -> None:
    """Clusters are given that URL, and the certificate is good for it."""
    port = free_port()
    url = "https://bellhop.example.com:8443"
    log = Log(io.StringIO())
    with running(tmp_path, Settings(), log, "127.0.0.1", port, f"{url}/") as given:
        address = json.loads((tmp_path / "address.json").read_text())
        trust = ssl.create_default_context(cadata=address["ca"])
        named = {"server_hostname": "bellhop.example.com", "assert_hostname": "bellhop.example.com"}
        with urllib3.HTTPSConnectionPool("127.0.0.1", port, ssl_context=trust, **named) as pool:
            answer = pool.request("GET", "/healthz", retries=False)

    assert (given, address["url"], answer.data) == (url, url, b"ok\n")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("GET", "/healthz", b"", 200, id="health"),
        pytest.param("POST", "/clusters/fleet/east/stranger", b"{}", 401, id="a stranger"),
        pytest.param("POST", "/clusters/fleet/east/east", b"x" * (LIMIT + 1), 413, id="too large"),
    ],
)
def test_answers_alike_behind_another_server(
    tmp_path: Path, method: str, path: str, body: bytes, status: int
) -> None:
    """A cloud's server asks nobody before it reads a body: the app does, as WSGI has it."""
    embedded = open_state(tmp_path, Settings(body_limit=LIMIT))
    embedded.installation.declare.register(EAST)
    app = validator(serving._front(embedded.installation, Log(io.StringIO())))
    environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path}
    environ |= {"SCRIPT_NAME": "", "QUERY_STRING": ""}
    environ["CONTENT_LENGTH"] = str(len(body))
    setup_testing_defaults(environ)
    environ["wsgi.input"] = io.BytesIO(body + b"the next request")
    begun: list[str] = []

    def start_response(status: str, _: Any, __: Any = None) -> Any:
        begun.append(status)

    answer = app(environ, start_response)
    said = b"".join(answer)
    answer.close()
    embedded.close()

    assert begun[0][:4] == f"{status} "
    assert said == b"ok\n" or json.loads(said)["error"]["message"]
