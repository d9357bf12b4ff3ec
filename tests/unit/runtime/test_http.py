"""The front of the embedded mode: the keys by which a request is read and worked on."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.local.http_app import Admission, Answer, run
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.runtime.embedded.http import Front
from tests.fakes.fleet import Fleet, cloud_event
from tests.fakes.outsider import KEY, PATH, TOKEN, Outsider, known


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """An installation with a cluster that has the sender `ci`."""
    one = Fleet(tmp_path)
    one.register("east")
    one.apply_example("network-policy")
    one.pump()
    yield one
    one.close()


def environ(path: str, headers: Mapping[str, str], peer: str = "192.0.2.1") -> dict[str, Any]:
    """Return a request's head as the server has it."""
    header_variables = {
        f"HTTP_{name.upper().replace('-', '_')}": each for name, each in headers.items()
    }
    about = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "REMOTE_ADDR": peer}
    return {**about, "wsgi.input": io.BytesIO(), "CONTENT_TYPE": STRUCTURED, **header_variables}


def share(fleet: Fleet, path: str, headers: Mapping[str, str], peer: str = "192.0.2.1") -> str:
    """Return the sender that a request waits for; empty for one that is refused."""
    found = Front(fleet.ingest).admit(environ(path, headers, peer))
    return found.sender if isinstance(found, Admission) else ""


def test_each_sender_waits_for_itself(fleet: Fleet) -> None:
    """A flood of one from outside holds up neither its cluster's own nor another one."""
    known(fleet)
    own = {"authorization": "Bearer east"}

    assert share(fleet, "/clusters/fleet/east", own) == "fleet/east"
    ci = Outsider(fleet, token=TOKEN)
    assert share(fleet, PATH, ci.headers(b"")) == "fleet/east/senders/ci"
    assert share(fleet, PATH, own) == ""


def test_who_claims_to_sign_waits_for_its_own_address(fleet: Fleet) -> None:
    """A client can name any cluster, and delays only those with its own address."""
    known(fleet, signs=True)
    head = Outsider(fleet, key=KEY).headers(b"")

    assert share(fleet, PATH, head) == "fleet/east/senders/ci 192.0.2.1"
    assert share(fleet, PATH, head, "192.0.2.2") == "fleet/east/senders/ci 192.0.2.2"
    shares = {share(fleet, f"{PATH}-{number}", head) for number in range(5)}
    assert shares == {"senders 192.0.2.1"}


def test_a_signature_is_checked_with_the_body(fleet: Fleet) -> None:
    """The bytes that arrived, and not what a reader made of them."""
    known(fleet, signs=True)
    front = Front(fleet.ingest)
    body = json.dumps(cloud_event("wéb"), ensure_ascii=False).encode()
    head = Outsider(fleet, key=KEY).headers(body)
    found = {}
    for sent in (body + b" ", body):
        asked = environ(PATH, head)
        assert not isinstance(front.admit(asked), Answer)
        found[sent] = run(front, asked, sent).code

    assert found == {body + b" ": 401, body: 200}


def test_who_asks_before_it_sends_is_allowed(fleet: Fleet) -> None:
    """At once, and without a look at anything."""
    fleet.store.counts.clear()
    asked = environ(PATH, {"webhook-request-origin": "ci.example"})
    found = Front(fleet.ingest).admit({**asked, "REQUEST_METHOD": "OPTIONS"})

    assert isinstance(found, Answer)
    assert found.code == 200
    assert ("WebHook-Allowed-Origin", "*") in found.headers
    assert not fleet.store.counts


@pytest.mark.parametrize(
    ("path", "code"),
    [("/clusters/fleet/east", 405), (PATH, 405), ("/healthz", 200), ("/elsewhere", 404)],
)
def test_a_head_is_refused_where_a_get_would_be(fleet: Fleet, path: str, code: int) -> None:
    """A client that probes an address gets an answer, not a failure."""
    asked = {**environ(path, {"authorization": "Bearer east"}), "REQUEST_METHOD": "HEAD"}
    front = Front(fleet.ingest)
    found = front.admit(asked)
    answer = found if isinstance(found, Answer) else run(front, asked, b"")

    assert answer.code == code
