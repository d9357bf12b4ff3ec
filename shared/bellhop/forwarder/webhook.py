"""The webhook that the API server calls: it answers at once, and always `allowed`.

No failure here stops a user's write. A request to another path than the one in the Secret does not
come from an API server: it is answered with 404, and its body is not read.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, BinaryIO

from msgspec.structs import replace

from bellhop import __version__
from bellhop.adapters.local.http_app import Admission, Answer, Environ
from bellhop.errors import InvalidError
from bellhop.forwarder.counts import Counts
from bellhop.ingest.admission import AnyKind, Hint, admission, changes_nothing, is_test_call
from bellhop.logs import Log
from bellhop.registration.forwarder_manifests import NAME, NAMES

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

    `paths` returns the paths that API servers may call at present; `on_wrong_path` is called for
    each request to another one, since the path may just have been changed.
    """

    def __init__(
        self,
        add_hint: Callable[[Hint, str], None],
        paths: Callable[[], Sequence[str]],
        on_wrong_path: Callable[[], None],
        counts: Counts,
        log: Log,
    ) -> None:
        self._add_hint = add_hint
        self._paths = paths
        self._on_wrong_path = on_wrong_path
        self._counts = counts
        self._log = log

    def admit(self, environ: Environ) -> Admission | Answer:
        """Admit API servers: the path is a secret that only they know."""
        if not self._is_for_us(str(environ.get("PATH_INFO", ""))):
            self._counts.add("wrong_path")
            self._on_wrong_path()
            return _answer(HTTPStatus.NOT_FOUND)
        if environ.get("REQUEST_METHOD") != "POST":
            return _answer(HTTPStatus.METHOD_NOT_ALLOWED)
        environ[_LET_IN] = True
        return Admission(_API_SERVERS, BODY_BYTES)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Answer one request; a server that does not ask for admission first does no harm."""
        found = None if _LET_IN in environ else self.admit(environ)
        named = str(environ.get("PATH_INFO", "")).endswith(NAMES)
        body = environ["wsgi.input"]
        answer = found if isinstance(found, Answer) else self._respond(body, named=named)
        start_response(answer.status, list(answer.headers))
        return [answer.body]

    def _respond(self, stream: BinaryIO, *, named: bool) -> Answer:
        body = stream.read(BODY_BYTES + 1)
        if len(body) > BODY_BYTES:
            self._counts.add("malformed")
            return _answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        request = _request(body)
        if request is None:
            self._counts.add("malformed")
            return _answer(HTTPStatus.BAD_REQUEST)
        self._note(request, named=named)
        return _answer(HTTPStatus.OK, _allow(request["uid"], warns=is_test_call(request)))

    def _is_for_us(self, path: str) -> bool:
        given = path.removesuffix(NAMES).encode("latin-1", "replace")
        # All are compared, so that the time reveals neither their number nor the right one.
        return any([hmac.compare_digest(given, each.encode()) for each in self._paths()])  # noqa: C419

    def _note(self, request: Mapping[str, Any], *, named: bool) -> None:
        try:
            hints = [] if changes_nothing(request) else admission(request, _KINDS)
        except (InvalidError, AttributeError, TypeError, ValueError, RecursionError):
            self._counts.add("malformed")
            return
        self._counts.add("hints" if hints else "ignored")
        for hint in hints:
            try:
                self._add_hint(replace(hint, named=named), datetime.now(UTC).isoformat())
            except Exception as error:  # noqa: BLE001 - the API server is answered, come what may
                self._log.error("Failed to note a hint", error, object=str(hint.key))


def _request(body: bytes) -> Mapping[str, Any] | None:
    try:
        request = json.loads(body)["request"]
        return request if isinstance(request["uid"], str) else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _allow(uid: str, *, warns: bool) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if warns:
        response["warnings"] = [f"{NAME} {__version__} was called"]
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return json.dumps(review).encode()


def _answer(status: HTTPStatus, body: bytes = b"") -> Answer:
    text = body or _REFUSALS[status]
    headers = (("Content-Type", "application/json"), ("Content-Length", str(len(text))))
    return Answer(f"{status.value} {status.phrase}", headers, text)
