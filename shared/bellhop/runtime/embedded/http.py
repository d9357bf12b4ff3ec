"""HTTP of the embedded mode: a WSGI app that passes requests to the ingest stage.

It needs no framework: one took longer to load than all the rest of ingest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from bellhop.adapters.local.http_app import Admission, Answer, Environ
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Caller, Response, caller, too_large
from bellhop.ingest.senders import Visitor
from bellhop.rendering.cloud_events import attributes
from bellhop.runtime.embedded.consumer import Observer

_LET_IN = "bellhop.let-in"
_HEALTH = "/healthz"
_HEADER = "HTTP_"


class Front:
    """The app with its own guard: our server asks it to admit a request before it reads the body.

    For other servers the app asks itself.
    """

    def __init__(self, stage: Ingest, observer: Observer | None = None) -> None:
        self._stage = stage
        self._observer = observer or Observer()

    def admit(self, environ: Environ) -> Admission | Answer:
        """Look at path, method, token and length; one cluster's requests wait for each other."""
        found = self._admit(environ)
        if isinstance(found, Answer):
            self._observer.answered(found.code)
        return found

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        refused = None if _LET_IN in environ else self.admit(environ)
        answer = refused if isinstance(refused, Answer) else self._respond(environ)
        start_response(answer.status, list(answer.headers))
        return [answer.body]

    def _admit(self, environ: Environ) -> Admission | Answer:
        limit = self._stage.body_limit
        if environ.get("PATH_INFO") == _HEALTH:
            return Admission(limit=0)
        headers = _headers(environ)
        found = _caller(environ, headers)
        if isinstance(found, Response):
            return _answer(found)
        gate = self._stage.admit(found)
        if isinstance(gate, Response):
            return _answer(gate)
        if _length(environ) > limit:
            return _answer(too_large(_length(environ), limit))
        environ[_LET_IN] = found, headers, gate
        share = gate.share if isinstance(gate, Visitor) else found.cluster
        # Who claims to have signed has proved nothing yet: each address waits for its own.
        unproven = f" {environ.get('REMOTE_ADDR', '')}" if found.signed else ""
        return Admission(f"{share}{unproven}", limit)

    def _respond(self, environ: Environ) -> Answer:
        if _LET_IN not in environ:
            return _whole(HTTPStatus.OK, b"ok\n", "text/plain; charset=utf-8")
        who, headers, gate = environ[_LET_IN]
        body = environ["wsgi.input"].read(_length(environ))
        media, sent = environ.get("CONTENT_TYPE", ""), environ.get("HTTP_DATE", "")
        request = who.make_request(body, media, sent, attributes(headers))
        reply = self._stage.respond(request, gate)
        self._observer.answered(reply.status)
        return _answer(reply)


def _headers(environ: Environ) -> dict[str, str]:
    """Return the headers of a request, their names in small letters."""
    return {
        name.removeprefix(_HEADER).replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith(_HEADER)
    }


def _length(environ: Environ) -> int:
    given = str(environ.get("CONTENT_LENGTH") or "")
    return int(given) if given.isdecimal() else 0


def _caller(environ: Environ, headers: Mapping[str, str]) -> Caller | Response:
    method, path = str(environ.get("REQUEST_METHOD", "")), str(environ.get("PATH_INFO", ""))
    return caller(method, path, headers)


def _answer(reply: Response) -> Answer:
    body = json.dumps(reply.body).encode()
    return _whole(HTTPStatus(reply.status), body, "application/json", *reply.headers.items())


def _whole(status: HTTPStatus, body: bytes, media: str, *headers: tuple[str, str]) -> Answer:
    about = (("Content-Type", media), ("Content-Length", str(len(body))))
    return Answer(f"{status.value} {status.phrase}", (*headers, *about), body)
