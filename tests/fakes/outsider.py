"""Somebody outside who sends CloudEvents for a cluster of a fleet, over any front's head."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellhop.ingest import signatures
from bellhop.ingest.http import Caller, Response, caller
from bellhop.rendering.cloud_events import BATCH, attributes
from bellhop.state.ingest_policy import Sender
from tests.fakes.fleet import Fleet

EAST = "fleet/east"
KEY = signatures.PREFIX + "a2V5" * 8
OTHER_KEY = signatures.PREFIX + "b3Ro" * 8
TOKEN = "of-the-ci"
PATH = "/clusters/fleet/east/senders/ci"


def hashed(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def known(fleet: Fleet, *, signs: bool = False, **more: Any) -> Sender:
    """Have cluster `fleet/east` know the sender `ci`."""
    proof = KEY if signs else hashed(TOKEN)
    given = {"made_at": fleet.clock.now(), "signs": signs, "proof": proof, **more}
    sender = Sender(EAST, "ci", **given)
    fleet.records.senders.put(sender)
    return sender


@dataclass
class Outsider:
    """A sender that proves itself by a token, or signs with a key where it has one."""

    fleet: Fleet
    token: str = ""
    key: str = ""
    path: str = PATH
    message: int = 0

    def headers(self, body: bytes, ago: float = 0) -> dict[str, str]:
        """Return the head of a request, with another id each time."""
        if not self.key:
            return {"authorization": f"Bearer {self.token}"} if self.token else {}
        self.message += 1
        name, at = f"msg_{self.message}", int(self.fleet.clock.now().timestamp() - ago)
        return {
            "webhook-id": name,
            "webhook-timestamp": str(at),
            "webhook-signature": signatures.sign(self.key, name, at, body),
        }

    def send(self, *events: Mapping[str, Any], **more: Any) -> Response:
        """Send CloudEvents as a batch, signed so long ago."""
        body = json.dumps(events).encode()
        return self.post(body, self.headers(body, **more))

    def post(self, body: bytes, headers: Mapping[str, str], media: str = BATCH) -> Response:
        """Send a request as an HTTP front passes it on."""
        found = caller("POST", self.path, headers)
        if isinstance(found, Response):
            return found
        return self.bring(found, body, headers, media)

    def bring(self, who: Caller, body: bytes, headers: Mapping[str, str], media: str) -> Response:
        """Ask for admission by the head, and then send the body."""
        ingest = self.fleet.ingest
        gate = ingest.admit(who)
        if isinstance(gate, Response):
            return gate
        return ingest.respond(who.make_request(body, media, "", attributes(headers)), gate)
