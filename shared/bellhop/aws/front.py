"""HTTP events of a function URL or an HTTP API, in payload format 2.0, for the ingest stage."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from bellhop.aws.resources import Open, Ready, Resources, from_environment
from bellhop.errors import DeniedError, TemporaryError
from bellhop.logs import Log
from bellhop.stages.ingest import Ingest, Reply, Request, sender

_HEALTH = "/healthz"
_REFUSED = 400

Event = Mapping[str, Any]


class Front:
    """The handler of the ingest function: one request an event, answered whatever happens."""

    def __init__(
        self, make: Callable[[Resources], Ingest], opening: Open = from_environment
    ) -> None:
        self._ready = Ready(make, opening)

    def __call__(self, event: Event, _context: object) -> dict[str, Any]:
        """Answer one request."""
        if event.get("rawPath") == _HEALTH:
            return _whole(200, "ok\n", "text/plain; charset=utf-8", {})
        reply = self._reply(event)
        headers = dict(reply.headers)
        return _whole(reply.status, json.dumps(reply.body), "application/json", headers)

    def _reply(self, event: Event) -> Reply:
        headers = event.get("headers", {})
        http = event["requestContext"]["http"]
        path = unquote(event.get("rawPath", ""))
        found = sender(http["method"], path, headers.get("authorization", ""))
        if isinstance(found, Reply):
            return found
        try:
            here, stage = self._ready.get()
        except Exception as error:  # noqa: BLE001 - an HTTP front answers whatever happens
            return _unready(error)
        if not _may_send(here, http["sourceIp"]):
            here.log.warning("Refused an address", cluster=found[0], address=http["sourceIp"])
            told = {"code": DeniedError.code, "message": "no events are taken from this address"}
            return Reply(403, {"error": told})
        cluster, token = found
        media, sent = headers.get("content-type", ""), headers.get("date", "")
        reply = stage.respond(Request(cluster, token, _body(event), media, sent))
        if reply.status >= _REFUSED:
            here.log.warning(
                "Refused a request", cluster=cluster, status=reply.status, address=http["sourceIp"]
            )
        here.end()
        return reply


def _body(event: Event) -> bytes:
    body = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _may_send(here: Resources, address: str) -> bool:
    """Say whether events may come from an address: AWS tells it, and no sender can choose it."""
    if not here.ingest_allow:
        return True
    return any(ipaddress.ip_address(address) in each for each in here.ingest_allow)


def _unready(error: Exception) -> Reply:
    """Send a sender away where the installation cannot be opened; it tells all of it again."""
    if isinstance(error, TemporaryError):
        Log().warning("Cannot open the installation yet", error=str(error))
    else:
        Log().error("Cannot open the installation", error)
    told = {"code": "Temporary", "message": "Bellhop is not ready; send it again"}
    return Reply(503, {"error": told}, {"Retry-After": "1"})


def _whole(status: int, body: str, media: str, headers: Mapping[str, str]) -> dict[str, Any]:
    about = {**headers, "content-type": media}
    return {"statusCode": status, "headers": about, "body": body, "isBase64Encoded": False}
