"""The HTTP function of the embedded mode, as functions-framework runs it.

It is wiring alone: the framework gives it a request, the app's extensions the stage.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import functions_framework
from flask import Request as HttpRequest
from flask import Response, current_app
from werkzeug.exceptions import RequestEntityTooLarge

from bellhop.stages.ingest import Reply, Request, address

if TYPE_CHECKING:
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
    limit: int = current_app.config["MAX_CONTENT_LENGTH"]
    length = request.content_length if request.content_length is not None else -1
    body = b""
    if length <= limit:
        try:
            body = request.get_data(cache=False)
        except RequestEntityTooLarge:
            length = limit + 1
    return _response(stage.respond(Request(*sender, body, length)))


def _response(reply: Reply) -> Response:
    return Response(
        json.dumps(reply.body), reply.status, dict(reply.headers), mimetype="application/json"
    )
