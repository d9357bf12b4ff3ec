"""Whatever reaches ingest over HTTP is answered, and never as a failure of ours.

The same requests go to the embedded listener as bytes, and to the fronts of AWS and Google as the
events that these make of them. A few seconds of them are tried each time; `BELLHOP_FUZZ=50` tries
fifty times as many.
"""

from __future__ import annotations

import base64
import io
import json
import os
import socket
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest
from flask import Request
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from bellhop.adapters.local.server import Server
from bellhop.ingest import signatures
from bellhop.logs import Log
from bellhop.rendering.cloud_events import BATCH, STRUCTURED
from bellhop.runtime.aws.http import Front as AwsFront
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.embedded.http import Front as EmbeddedFront
from bellhop.runtime.gcp.http import Front as GcpFront
from bellhop.settings import Settings
from bellhop.state.ingest_policy import Sender
from tests.fakes.clock import START
from tests.fakes.fleet import Fleet, cloud_event
from tests.functions.lab import Context, event
from tests.unit.ingest.test_cloud_events import EACH, SOURCE

MANY = int(os.environ.get("BELLHOP_FUZZ", "0")) or 1
LIMIT = 20_000
PATH = "/clusters/fleet/east"
EAST = (("authorization", "Bearer east"),)
KEY = signatures.new_key()
NOW = int(START.timestamp())
PAYLOADS = Path(__file__).parents[1] / "payloads" / "kube"
BODIES = [
    b"",
    b"{}",
    json.dumps({"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": []}).encode(),
    (PAYLOADS / "admission-create-service.json").read_bytes(),
    (PAYLOADS / "audit-create-service.json").read_bytes(),
    (PAYLOADS / "audit-deletecollection.json").read_bytes(),
    b'{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": {}}',
    b'[{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data_base64": "e30"}]',
    b"[" * 5000,
    b'{"kind": "\\ud800"}',
    b"\xef\xbb\xbf{}",
    "{}".encode("utf-16"),
    b"x" * (LIMIT + 1),
]
ANSWERS = {200, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 429, 431, 501, 505}
"""Every status that a front may give here; 503 is for a store that does not answer."""


@dataclass(frozen=True)
class Ask:
    """One request, as somebody may make it; the body is sent in another way than it says."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    framing: str = "length"


parts = st.text(max_size=12) | st.sampled_from(
    ["clusters", "fleet", "east", "..", "", "%00", "%ff", "%2f", "a" * 3000, "\ud800", "\x00", "é"]
)
paths = (
    st.just(PATH)
    | st.just(f"{PATH}/east")
    | st.sampled_from([f"{PATH}/senders/{name}" for name in ("ci", "store", "nobody", "é", "..")])
    | st.lists(parts, max_size=5).map("/".join).map("/".__add__)
    | st.lists(parts, max_size=2).map(lambda more: "/clusters/" + "/".join(["fleet", *more]))
    | st.text(max_size=30)
)
methods = st.sampled_from(["POST"] * 6 + ["GET", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT"])
tokens = st.sampled_from(
    ["east"] * 3 + ["", "west", "é", "\ud800", "a.b.c", "e30.e30.e30", "x" * 9000]
)
values = st.text(string.printable, max_size=20) | st.sampled_from(["é", "\x00", "x" * 5000])
proofs = st.tuples(st.sampled_from(["Bearer ", "Basic ", ""]), tokens).map("".join)
names = ["content-type", "date", "content-encoding", "x-forwarded-for", "expect", "host", "x-é"]
names += ["webhook-id", "webhook-timestamp", "webhook-signature", "webhook-request-origin"]
names += ["webhook-request-rate", "webhook-request-callback"]
names += [f"ce-{name}" for name in ("id", "source", "type", "specversion", "subject", "time", "é")]
usual = st.sampled_from(
    [
        "application/json",
        "text/html",
        "gzip",
        "100-continue",
        "1.0",
        "%ff%zz",
        "2026-01-01T00:00:00Z",
        str(NOW),
        "v1,AAAA",
        "v1, v1,é v2,x",
        " ".join(["v1,AAAA"] * 9),
    ]
    + [f"application/cloudevents{form}+json" for form in ("", "-batch")]
)
headers = st.lists(
    st.tuples(st.just("authorization"), proofs) | st.tuples(st.sampled_from(names), values | usual),
    max_size=8,
).map(tuple)
bodies = st.sampled_from(BODIES) | st.binary(max_size=60)


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """Return a body as it should be, with something in it changed, missing or twice."""
    body = bytearray(draw(st.sampled_from(BODIES[2:8])))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=9))
    return bytes(body)


known = st.builds(
    Ask,
    st.just("POST"),
    st.just(PATH),
    headers.map(lambda more: (("authorization", "Bearer east"), *more)),
    bent() | bodies,
    st.sampled_from(["length", "chunked", "cut", "short", "long", "twice", "none", "bad chunk"]),
)


@st.composite
def signed(draw: st.DrawFn) -> Ask:
    """Return a request of a sender that signs, as it should be or with some of it changed."""
    body, name = draw(bent() | bodies), draw(st.text(max_size=9))
    media = draw(st.sampled_from([STRUCTURED, BATCH, "application/json", "text/html"]))
    sender = draw(st.sampled_from(["store"] * 4 + ["ci", "nobody"]))
    at = NOW + draw(st.sampled_from([0, 0, 0, 300, -300, 301, -301]))
    head = {
        "webhook-id": name.encode("utf-8", "replace").decode("latin-1"),
        "webhook-timestamp": str(at),
        "webhook-signature": signatures.sign(KEY, name, at, body),
        "content-type": media,
    }
    changed = dict(draw(headers)) if draw(st.booleans()) else {}
    framing = draw(st.sampled_from(["length"] * 3 + ["chunked", "cut", "short"]))
    return Ask("POST", f"{PATH}/senders/{sender}", (*{**head, **changed}.items(),), body, framing)


asks = known | signed() | st.builds(Ask, methods, paths, headers, bodies)


def tried(count: int) -> Any:
    """Bound how many are tried."""
    return settings(
        max_examples=count * MANY,
        deadline=None,
        derandomize=MANY == 1,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    made = Fleet(tmp_path_factory.mktemp("fuzzed"), settings=Settings(body_limit=LIMIT))
    made.register("east", env="production")
    made.apply_example("network-policy")
    made.apply(SOURCE, EACH)
    now = made.clock.now()
    made.records.senders.put(Sender("fleet/east", "ci", now, proof="digest"))
    made.records.senders.put(Sender("fleet/east", "store", now, signs=True, proof=KEY))
    made.pump()
    yield made
    made.close()


@pytest.fixture(scope="module")
def here(fleet: Fleet) -> Any:
    """The installation of the fleet, as functions see one."""
    return Resources(
        settings=Settings(body_limit=LIMIT),
        records=fleet.records,
        queues={},
        publisher=fleet.publisher,
        secrets="",
        ingest_url="",
        log=Log(io.StringIO()),
    )


def failed(fleet: Fleet) -> bool:
    return '"severity": "ERROR"' in fleet.output.getvalue()


@tried(150)
@given(ask=asks, encoded=st.booleans(), cut=st.booleans())
@example(ask=Ask("POST", PATH, EAST, b"{}"), encoded=True, cut=True)
@example(ask=Ask("POST", PATH, EAST, b"\xff"), encoded=False, cut=False)
def test_the_front_of_aws_answers(
    fleet: Fleet,
    here: Any,
    ask: Ask,
    encoded: bool,  # noqa: FBT001 - a case
    cut: bool,  # noqa: FBT001 - a case
) -> None:
    """It is asked by events of the shape that was recorded, with anything in their values."""
    front = AwsFront(lambda _: fleet.ingest, lambda: here)
    sent = event("function_url")
    text = ask.body.decode("utf-8", "surrogateescape")
    sent_body = base64.b64encode(ask.body).decode() if encoded else text
    sent["body"], sent["isBase64Encoded"] = sent_body[: -1 if cut else None], encoded
    sent["rawPath"] = ask.path
    sent["requestContext"]["http"] |= {"method": ask.method, "path": ask.path}
    sent["headers"] |= dict(ask.headers)

    answer = front(sent, Context())

    assert answer["statusCode"] in ANSWERS, (ask, fleet.output.getvalue())
    json.dumps(answer)


@tried(150)
@given(ask=asks)
def test_the_front_of_google_answers(fleet: Fleet, here: Any, ask: Ask) -> None:
    """It is asked by what functions-framework makes of a request."""
    front = GcpFront(lambda _: fleet.ingest, lambda: here)
    environ = EnvironBuilder("/", method=ask.method, data=ask.body).get_environ()
    path = unquote_to_bytes(ask.path.encode("utf-8", "surrogatepass"))
    environ["PATH_INFO"] = path.decode("latin-1")
    for name, value in ask.headers:
        key = name.upper().replace("-", "_")
        known = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        environ[known] = value.encode("utf-8", "surrogatepass").decode("latin-1")

    body, status, _ = front(Request(environ))

    assert status in ANSWERS, (ask, fleet.output.getvalue())
    assert isinstance(json.loads(body), dict)


@pytest.fixture(scope="module")
def listener(fleet: Fleet) -> Iterator[tuple[str, int]]:
    server = Server(EmbeddedFront(fleet.ingest), host="127.0.0.1", port=0)
    server.start()
    yield "127.0.0.1", server.port
    server.stop()


def written(ask: Ask) -> bytes:
    """Return a request as it goes over the wire, with the lie that its framing is."""
    path = quote(ask.path.encode("utf-8", "surrogatepass"), safe="/%") or "/"
    lines = [f"{ask.method} {path} HTTP/1.1", "host: here"]
    lines += [f"{name}: {value}" for name, value in ask.headers if name != "host"]
    size, body = len(ask.body), ask.body
    if ask.framing in ("chunked", "bad chunk"):
        lines.append("transfer-encoding: chunked")
        mark = b"%x" % size if ask.framing == "chunked" else b"-zz"
        body = mark + b"\r\n" + body + b"\r\n0\r\n\r\n" if body else b"0\r\n\r\n"
    elif ask.framing != "none":
        size += {"short": 40, "long": -min(size, 2)}.get(ask.framing, 0)
        lines.append(f"content-length: {size}")
        lines += [f"content-length: {size + 1}"] * (ask.framing == "twice")
    sent = "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body
    return sent[: len(sent) // 2] if ask.framing == "cut" else sent


def asked(place: tuple[str, int], sent: bytes) -> bytes:
    """Send bytes and no more, and return what comes back until the other end closes."""
    with socket.create_connection(place, timeout=20) as wire:
        wire.sendall(sent)
        wire.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while more := wire.recv(65536):
                found += more
        except ConnectionResetError:
            pass
        return found


@tried(120)
@given(ask=asks)
def test_the_listener_answers(fleet: Fleet, listener: tuple[str, int], ask: Ask) -> None:
    """Bytes of any kind are answered or hung up on, and the next one is served as ever."""
    found = asked(listener, written(ask))

    for line in found.split(b"\r\n"):
        if line.startswith(b"HTTP/1.1 "):
            assert int(line[9:12]) in ANSWERS, (ask, found, fleet.output.getvalue())
    alive = asked(listener, b"GET /healthz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
    assert alive.startswith(b"HTTP/1.1 200")


def test_what_a_sender_signs_is_taken_over_the_wire(listener: tuple[str, int]) -> None:
    """Once: the fuzzed requests are not refused because a key is missing."""
    body = json.dumps(cloud_event("web")).encode()
    head = (
        ("webhook-id", "wire"),
        ("webhook-timestamp", str(NOW)),
        ("webhook-signature", f"v1,AAAA {signatures.sign(KEY, 'wire', NOW, body)}"),
        ("content-type", STRUCTURED),
        ("connection", "close"),
    )
    ask = Ask("POST", f"{PATH}/senders/store", head, body)
    sent = written(ask)

    assert asked(listener, sent).endswith(b'{"taken": 1, "dropped": 0}')
    assert asked(listener, sent).startswith(b"HTTP/1.1 401 ")


def test_nothing_of_it_was_a_failure_of_ours(fleet: Fleet) -> None:
    """What ingest foresees is no error in its log."""
    assert not failed(fleet), fleet.output.getvalue()[-2000:]
