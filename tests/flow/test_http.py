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

import pytest
import urllib3

from bellhop.embedded.serve import running
from bellhop.embedded.state import open_state
from bellhop.logs import Log
from bellhop.model.record import Cluster
from bellhop.settings import Settings

LIMIT = 100_000


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[tuple[urllib3.PoolManager, str]]:
    """Serve an installation that knows one cluster, `fleet/east` with the token `east`."""
    opened = open_state(tmp_path / "state", Settings())
    digest = hashlib.sha256(b"east").hexdigest()
    opened.installation.declare.register(
        Cluster("fleet", "east", {}, "v1.20.2", digest, datetime.now(UTC))
    )
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
    ("method", "path", "headers", "body", "status", "expected"),
    [
        pytest.param("GET", "/", {}, None, 404, "events go to /clusters", id="another path"),
        pytest.param("GET", "/clusters/fleet/east", {}, None, 405, "by POST", id="another verb"),
        pytest.param("POST", "/clusters/fleet/east", {}, "{}", 401, "the token is not", id="none"),
        pytest.param(
            "POST",
            "/clusters/fleet/east",
            {"Authorization": "Bearer stranger"},
            "{}",
            401,
            "the token is not the one of cluster 'fleet/east'",
            id="a stranger's token",
        ),
        pytest.param(
            "POST",
            "/clusters/fleet/east",
            {"Authorization": "Bearer east"},
            "x" * (LIMIT + 1),
            413,
            f"the limit is {LIMIT}",
            id="too large",
        ),
        pytest.param(
            "POST",
            "/clusters/fleet/east/stranger",
            {},
            "x" * (LIMIT + 1),
            401,
            "the token is not the one of cluster 'fleet/east'",
            id="too large from a stranger",
        ),
        pytest.param(
            "POST", "/clusters/fleet/east/east", {}, "{", 400, "not JSON", id="token in the path"
        ),
        pytest.param(
            "POST",
            "/clusters/fleet/east/east",
            {"Content-Type": "text/yaml"},
            "{}",
            415,
            "send it as application/json",
            id="another type",
        ),
    ],
)
def test_answers_bad_requests_with_a_sentence(
    ingest: tuple[urllib3.PoolManager, str],
    method: str,
    path: str,
    headers: dict[str, str],
    body: Any,
    status: int,
    expected: str,
) -> None:
    """Each mistake has its status and its sentence, and the next request is served."""
    pool, url = ingest

    answer = pool.request(method, url + path, headers=headers, body=body, retries=False)

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
