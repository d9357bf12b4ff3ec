"""The HTTP function of the embedded mode, as functions-framework runs it.

It is wiring alone: the framework gives it a request, the app's extensions the stage.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import functions_framework
from flask import Request as HttpRequest
from flask import Response, current_app

from bellhop.stages.ingest import Reply, Request, address, too_large

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from bellhop.stages.ingest import Ingest


@functions_framework.http
def ingest(request: HttpRequest) -> Response:
    """Answer one HTTP request."""
    if request.path == "/healthz":
        return Response("ok\n", mimetype="text/plain")
    sender = address(request.path, request.headers.get("Authorization", ""))
    if sender is None:
        text = "nothing is served here; events go to /clusters/NAMESPACE/NAME"
        return _response(Reply(404, {"error": {"code": "Missing", "message": text}}))
    if request.method != "POST":
        text = "events are sent by POST"
        return _response(Reply(405, {"error": {"code": "Invalid", "message": text}}))
    stage: Ingest = current_app.extensions["bellhop.ingest"]
    return _response(stage.respond(Request(*sender, request.get_data())))


_PIECE = 65_536
_PIECES = 8
"""How many times the limit is read past before a sender is cut off."""


class Bounded:
    """Reads no more of a request than the limit; the framework would read all there is.

    A longer one is refused, whoever sent it. What is still to come is read past in pieces, so that
    the sender gets to read its answer; one that sends without end is cut off.
    """

    def __init__(self, app: WSGIApplication, limit: int) -> None:
        self._app = app
        self._limit = limit

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = b""
        if length <= self._limit:
            chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
            body = environ["wsgi.input"].read(self._limit + 1 if chunked else length)
        if max(length, len(body)) > self._limit:
            for _ in range(_PIECES * self._limit // _PIECE):
                if not environ["wsgi.input"].read(_PIECE):
                    break
            return _response(too_large(max(length, len(body)), self._limit))(
                environ, start_response
            )
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return self._app(environ, start_response)


def _response(reply: Reply) -> Response:
    return Response(
        json.dumps(reply.body), reply.status, dict(reply.headers), mimetype="application/json"
    )
