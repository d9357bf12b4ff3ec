"""HTTP requests for the ingest stage, in a form common to all clouds."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct

from bellhop.errors import DeniedError, InvalidError, TemporaryError
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Caller, Request, Response, caller, too_large
from bellhop.logs import Log
from bellhop.rendering.cloud_events import attributes
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.cloud.resources import Resources

_HEALTH = "/healthz"
_REFUSED = 400


class Call(Struct, frozen=True):
    """One request; names of headers are in small letters, and the path is as it was meant.

    The address is the cloud's word for where it comes from: no sender can choose it. `length` is
    what the sender says of its body, 0 if nothing; a body that the cloud has bent is a ValueError.
    """

    method: str
    path: str
    address: str
    body: Callable[[], bytes]
    headers: Mapping[str, str] = {}
    length: int = 0


class Answer(NamedTuple):
    """An HTTP response, for a cloud to send."""

    status: int
    body: str
    headers: Mapping[str, str]


_Respond = Callable[[Ingest, Call, Caller], Response]


class IngestHandler:
    """Answers one request after the other, or many at once, whatever happens."""

    def __init__(self, ready: Ready[Resources, Ingest]) -> None:
        self._ready = ready

    def answer(self, call: Call) -> Answer:
        """Answer one request."""
        if call.path == _HEALTH:
            return Answer(200, "ok\n", {"content-type": "text/plain; charset=utf-8"})
        return _answer(self._reply(call, _respond))

    def hear(self, call: Call) -> Answer:
        """Answer one request that the cloud let in, since it is its own: an event of the cloud's.

        The path says for which cluster it counts; the cloud verified the token in it.
        """
        return _answer(self._reply(call, _hear, ours=True))

    def _reply(self, call: Call, respond: _Respond, *, ours: bool = False) -> Response:
        found = caller(call.method, call.path, call.headers)
        if isinstance(found, Response):
            return found
        try:
            here, stage = self._ready.get()
        except Exception as error:  # noqa: BLE001 - an HTTP front answers whatever happens
            return _unready(error)
        if not ours and not _may_send(here, call.address):
            here.log.warning("Refused an address", cluster=found.cluster, address=call.address)
            refused = {"code": DeniedError.code, "message": "no events are taken from this address"}
            return _end(here, Response(403, {"error": refused}))
        reply = respond(stage, call, found)
        if reply.status >= _REFUSED:
            here.log.warning(
                "Refused a request",
                cluster=found.cluster,
                status=reply.status,
                address=call.address,
            )
        return _end(here, reply)


def _end(here: Resources, reply: Response) -> Response:
    """Count a refused request, and write the metrics that are due."""
    if reply.status >= _REFUSED:
        here.count_refusal(reply.status)
    here.end()
    return reply


def _respond(stage: Ingest, call: Call, who: Caller) -> Response:
    """Authenticate a sender before its body is read."""
    gate = stage.admit(who)
    if isinstance(gate, Response):
        return gate
    request = _read_request(stage, call, who)
    return request if isinstance(request, Response) else stage.respond(request, gate)


def _hear(stage: Ingest, call: Call, who: Caller) -> Response:
    request = _read_request(stage, call, who)
    return request if isinstance(request, Response) else stage.hear(request)


def _read_request(stage: Ingest, call: Call, who: Caller) -> Request | Response:
    """Read a request, or return why it cannot be read."""
    if call.length > stage.body_limit:
        return too_large(call.length, stage.body_limit)
    media, sent = call.headers.get("content-type", ""), call.headers.get("date", "")
    try:
        body = call.body()
    except ValueError:
        text = "cannot read the request's body as the cloud hands it over; send it again"
        return Response(_REFUSED, {"error": {"code": InvalidError.code, "message": text}})
    return who.make_request(body, media, sent, attributes(call.headers))


def _answer(reply: Response) -> Answer:
    headers = {**reply.headers, "content-type": "application/json"}
    return Answer(reply.status, json.dumps(reply.body), headers)


def _may_send(here: Resources, address: str) -> bool:
    if not here.ingest_allow:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        # The sender's address is unknown.
        return False
    return any(found in each for each in here.ingest_allow)


def _unready(error: Exception) -> Response:
    """Return a response after which a sender tries again: the installation cannot be opened."""
    if isinstance(error, TemporaryError):
        Log().warning("Cannot open the installation yet", error=str(error))
    else:
        Log().error("Cannot open the installation", error)
    error_body = {"code": "Temporary", "message": "Bellhop is not ready; send it again"}
    return Response(503, {"error": error_body}, {"Retry-After": "1"})
