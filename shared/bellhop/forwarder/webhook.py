"""Where the API server rings: it is answered at once, and always `allowed`.

Whatever goes wrong here, somebody's write goes on. Who knocks at another path than the one in the
Secret is nobody's API server: it learns nothing, and nothing of what it brings is read.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, BinaryIO

from bellhop import __version__
from bellhop.adapters.local.http_app import Admission, Answer, Environ
from bellhop.errors import InvalidError
from bellhop.forwarder.counts import Counts
from bellhop.ingest.admission import AnyKind, Hint, admission, changes_nothing, is_knock
from bellhop.logs import Log
from bellhop.registration.forwarder_manifests import NAME

BODY_BYTES = 4 * 1024 * 1024
"""The longest review that is read: API servers take objects up to 3 MiB in all."""

_LET_IN = "bellhop.let-in"
_API_SERVERS = "API servers"
_KINDS = AnyKind()
_REFUSALS = {
    HTTPStatus.NOT_FOUND: b'{"error":"there is nothing here"}',
    HTTPStatus.METHOD_NOT_ALLOWED: b'{"error":"send an AdmissionReview by POST"}',
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: b'{"error":"the body is too large"}',
    HTTPStatus.BAD_REQUEST: (
        b'{"error":"the body is not an AdmissionReview with a request and uid"}'
    ),
}


class Webhook:
    """The WSGI app of the webhook.

    `paths` tells the paths that may ring at present; `stranger` is called for each request to
    another one, since the path may just have been changed.
    """

    def __init__(
        self,
        ring: Callable[[Hint, str], None],
        paths: Callable[[], Sequence[str]],
        stranger: Callable[[], None],
        counts: Counts,
        log: Log,
    ) -> None:
        self._ring = ring
        self._paths = paths
        self._stranger = stranger
        self._counts = counts
        self._log = log

    def admit(self, environ: Environ) -> Admission | Answer:
        """Let API servers in; the path is all that tells them from strangers."""
        if not self._is_for_us(str(environ.get("PATH_INFO", ""))):
            self._counts.add("wrong_path")
            self._stranger()
            return _answer(HTTPStatus.NOT_FOUND)
        if environ.get("REQUEST_METHOD") != "POST":
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED)
        environ[_LET_IN] = True
        return Admission(_API_SERVERS, BODY_BYTES)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Answer one request; a server that does not ask for admission first does no harm."""
        found = None if _LET_IN in environ else self.admit(environ)
        answer = found if isinstance(found, Answer) else self._respond(environ["wsgi.input"])
        start_response(answer.status, list(answer.headers))
        return [answer.body]

    def _respond(self, stream: BinaryIO) -> Answer:
        body = stream.read(BODY_BYTES + 1)
        if len(body) > BODY_BYTES:
            self._counts.add("malformed")
            return _answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        request = _request(body)
        if request is None:
            self._counts.add("malformed")
            return _answer(HTTPStatus.BAD_REQUEST)
        self._note(request)
        return _answer(HTTPStatus.OK, _allowed(request["uid"], knocked=is_knock(request)))

    def _is_for_us(self, path: str) -> bool:
        given = path.encode("latin-1", "replace")
        # All are compared, so that the time tells neither how many there are nor which one it was.
        return any([hmac.compare_digest(given, each.encode()) for each in self._paths()])  # noqa: C419

    def _note(self, request: Mapping[str, Any]) -> None:
        try:
            hints = [] if changes_nothing(request) else admission(request, _KINDS)
        except (InvalidError, AttributeError, TypeError, ValueError, RecursionError):
            self._counts.add("malformed")
            return
        self._counts.add("hints" if hints else "ignored")
        for hint in hints:
            try:
                self._ring(hint, datetime.now(UTC).isoformat())
            except Exception as error:  # noqa: BLE001 - the API server is answered, come what may
                self._log.error("Failed to note a hint", error, object=str(hint.key))


def _request(body: bytes) -> Mapping[str, Any] | None:
    try:
        request = json.loads(body)["request"]
        return request if isinstance(request["uid"], str) else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _allowed(uid: str, *, knocked: bool) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if knocked:
        response["warnings"] = [f"{NAME} {__version__} was called"]
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return json.dumps(review).encode()


def _answer(status: HTTPStatus, body: bytes = b"") -> Answer:
    text = body or _REFUSALS[status]
    headers = (("Content-Type", "application/json"), ("Content-Length", str(len(text))))
    return Answer(f"{status.value} {status.phrase}", headers, text)
