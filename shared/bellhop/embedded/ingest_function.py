"""The HTTP function of the embedded mode, as functions-framework runs it.

It is wiring alone: the framework gives it a request, the app's extensions the stage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import functions_framework
from flask import Request as HttpRequest
from flask import Response, current_app

from bellhop.adapters.local.wsgi import Admission, Answer, Environ
from bellhop.stages.ingest import Reply, Request, address, too_large

if TYPE_CHECKING:
    from wsgiref.types import StartResponse

    from flask import Flask

    from bellhop.stages.ingest import Ingest

_GATE = "bellhop.gate"
_HEALTH = "/healthz"


@functions_framework.http
def ingest(request: HttpRequest) -> Response:
    """Answer one HTTP request."""
    if request.path == _HEALTH:
        return Response("ok\n", mimetype="text/plain")
    stage: Ingest = current_app.extensions["bellhop.ingest"]
    found = _sender(request.environ)
    if isinstance(found, Reply):
        return _response(found)
    gate = request.environ.get(_GATE) or stage.admit(*found)
    if isinstance(gate, Reply):
        return _response(gate)
    # No limit of the framework's: it reads all of a body after the answer too, and would fail then.
    body = request.get_data()
    if len(body) > stage.body_limit:
        return _response(too_large(len(body), stage.body_limit))
    headers = request.headers
    sent = Request(*found, body, headers.get("Content-Type", ""), headers.get("Date", ""))
    return _response(stage.respond(sent, gate))


class Bounded:
    """The function, for our own server: it asks whom to let in before it reads a body.

    Other servers know no such question; the function then asks it by itself.
    """

    def __init__(self, app: Flask, limit: int) -> None:
        self._app = app
        self._limit = limit

    def admit(self, environ: Environ) -> Admission | Answer:
        """Look at path, method, token and length; one cluster's requests wait for each other."""
        if environ.get("PATH_INFO") == _HEALTH:
            return Admission(limit=0)
        found = _sender(environ)
        if isinstance(found, Reply):
            return _answer(found)
        stage: Ingest = self._app.extensions["bellhop.ingest"]
        gate = stage.admit(*found)
        if isinstance(gate, Reply):
            return _answer(gate)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length > self._limit:
            return _answer(too_large(length, self._limit))
        environ[_GATE] = gate
        return Admission(found[0], self._limit)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        return self._app(environ, start_response)


def _sender(environ: Environ) -> tuple[str, str] | Reply:
    found = address(str(environ.get("PATH_INFO", "")), str(environ.get("HTTP_AUTHORIZATION", "")))
    if found is None:
        text = "nothing is served here; events go to /clusters/NAMESPACE/NAME"
        return Reply(404, {"error": {"code": "Missing", "message": text}})
    if environ.get("REQUEST_METHOD") != "POST":
        text = "events are sent by POST"
        return Reply(405, {"error": {"code": "Invalid", "message": text}}, {"Allow": "POST"})
    return found


def _answer(reply: Reply) -> Answer:
    response = _response(reply)
    return Answer(response.status, tuple(response.headers.items()), response.get_data())


def _response(reply: Reply) -> Response:
    return Response(
        json.dumps(reply.body), reply.status, dict(reply.headers), mimetype="application/json"
    )
