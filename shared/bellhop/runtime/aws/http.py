"""HTTP events for the ingest stage: of an HTTP API in payload format 2.0, of a private API in 1.0.

Where rules of EventBridge were asked for, their queue feeds the same function. Who calls by HTTP
cannot pretend to be the queue: what Lambda is then given is made by AWS, and has no `Records`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from bellhop.ingest.handler import Ingest
from bellhop.runtime.aws.bridge import Bridge
from bellhop.runtime.aws.resources import Resources, from_environment
from bellhop.runtime.cloud.http import Call, IngestHandler
from bellhop.runtime.cloud.ready import Ready

Event = Mapping[str, Any]


class Front:
    """The handler of the ingest function: one request an event, or messages of the rules' queue."""

    def __init__(
        self,
        make: Callable[[Resources], Ingest],
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        ready = Ready(make, opening)
        self._desk = IngestHandler(ready)
        self._bridge = Bridge(ready)

    def __call__(self, event: Event, _context: object) -> dict[str, Any]:
        """Answer one request, or work on a batch."""
        if "Records" in event:
            return self._bridge(event["Records"])
        answer = self._desk.answer(_call(event))
        return {
            "statusCode": answer.status,
            "headers": dict(answer.headers),
            "body": answer.body,
            "isBase64Encoded": False,
        }


def _call(event: Event) -> Call:
    http = event["requestContext"].get("http")
    if http is None:
        return _private_call(event)
    return Call(
        method=http["method"],
        path=unquote(event.get("rawPath", "")),
        address=http["sourceIp"],
        body=lambda: _body(event),
        headers=event.get("headers", {}),
    )


def _private_call(event: Event) -> Call:
    """Read an event of a REST API, in which headers are written as the sender wrote them."""
    return Call(
        method=event["httpMethod"],
        path=unquote(event["path"]),
        address=event["requestContext"]["identity"]["sourceIp"],
        body=lambda: _body(event),
        headers={name.lower(): value for name, value in (event["headers"] or {}).items()},
    )


def _body(event: Event) -> bytes:
    body = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
