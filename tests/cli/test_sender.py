"""Senders from outside in an installation of each kind: what a command adds is let in by ingest."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

from bellhop.ingest import signatures
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Response, caller
from bellhop.logs import Log
from bellhop.rendering.cloud_events import STRUCTURED
from bellhop.state.cluster import Cluster
from tests.cli.conftest import NOWHERE, House

KEY = "prod/eu-1"
EVENT = json.dumps({"specversion": "1.0", "id": "1", "source": "ci", "type": "built"}).encode()


def registered(house: House) -> Ingest:
    """Have the cluster be there, and ingest as a function of the installation is."""
    here = house.here
    cluster = Cluster("prod", "eu-1", {}, "v1.30.0", "digest", here.records.clock.now())
    here.declare.register(cluster)
    here.records.gates.put(KEY, cluster.gate((), 0, ()))
    if house.context.kind == "embedded":
        address = json.dumps({"url": NOWHERE, "ca": ""})
        (house.context.state / "address.json").write_text(address)
    return Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))


def draw_secret(house: House, *words: str) -> str:
    """Run a command, and return the secret that it shows."""
    done = house(*words)
    assert done.exit_code == 0, done.stderr
    lines = (line.split() for line in done.stdout.splitlines())
    return next(line[1] for line in lines if line[0] in {"token", "key"})


def send(ingest: Ingest, name: str, **headers: str) -> int:
    """Send a CloudEvent to the address of a sender; return the status."""
    given = {each.replace("_", "-"): value for each, value in headers.items()}
    found = caller("POST", f"/clusters/{KEY}/senders/{name}", given)
    assert not isinstance(found, Response)
    return ingest.respond(found.make_request(EVENT, STRUCTURED, "", {})).status


def signed(key: str) -> dict[str, str]:
    """Return the head of a request that is signed now."""
    at = int(datetime.now(UTC).timestamp())
    signature = signatures.sign(key, "msg", at, EVENT)
    return {"webhook_id": "msg", "webhook_timestamp": str(at), "webhook_signature": signature}


def test_senders_come_and_go(house: House) -> None:
    """By a token and by a key, through a rotation, until they are removed.

    It takes seconds: commands and requests go to an installation on an emulator one by one.
    """
    ingest = registered(house)
    first = draw_secret(house, "sender", "add", KEY, "ci")
    key = draw_secret(house, "sender", "add", KEY, "store", "--hmac")
    head = signed(key)

    assert send(ingest, "ci", authorization=f"Bearer {first}") == 200
    assert [send(ingest, "store", **head) for _ in range(2)] == [200, 401]
    second = draw_secret(house, "sender", "rotate", KEY, "ci")
    assert {send(ingest, "ci", authorization=f"Bearer {each}") for each in (first, second)} == {200}
    rows = json.loads(house("sender", "list", "-o", "json").stdout)
    assert [each["address"] for each in rows] == [
        f"{NOWHERE}/clusters/{KEY}/senders/{name}" for name in ("ci", "store")
    ]
    for name in ("ci", "store"):
        assert house("sender", "remove", KEY, name).exit_code == 0
    assert send(ingest, "ci", authorization=f"Bearer {second}") == 401
    assert house("sender", "list").stderr.strip() == "No senders found."
