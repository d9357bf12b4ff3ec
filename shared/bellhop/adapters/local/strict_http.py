"""HTTP/1.1 as the server reads it: h11, and what h11 lets pass and we do not.

A proxy before us that believes the other of two lengths would take somebody's body for the next
request.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import h11

from bellhop.adapters.local.http_app import Answer

HEAD_BYTES = 65_536
"""The longest head of a request: a token of a service account takes 2 KB."""

CHUNKS = 5_000
"""Into how many chunks a body may be cut."""

_ONCE = frozenset({b"authorization", b"content-type", b"host", b"transfer-encoding"})
_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})
_PLAIN_PATH = re.compile(rb"/(?!.*%2f)", re.IGNORECASE)


class StrictConnection(h11.Connection):
    """The server's side of one connection; `refusal` says why `next_event` has raised."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self.refusal = (HTTPStatus.BAD_REQUEST, "this is not a request that is understood here")
        self._bare = False
        self._chunks = 0

    def next_event(self) -> Any:
        """Return the next event.

        Raises:
            h11.RemoteProtocolError: what the client sends is not understood here.
        """
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.refusal = HTTPStatus(error.error_status_hint), self.refusal[1]
            raise
        except ValueError as error:
            # A length of thousands of digits.
            raise h11.RemoteProtocolError(str(error)) from error
        problem = None
        if isinstance(event, h11.Request):
            self._bare, self._chunks = event.method == b"HEAD", 0
            problem = _problem(event)
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            if self._chunks > CHUNKS:
                problem = HTTPStatus.BAD_REQUEST, f"the body comes in more than {CHUNKS} chunks"
        if problem is not None:
            self.refusal = problem
            raise h11.RemoteProtocolError(problem[1], problem[0])
        return event

    def render(self, answer: Answer) -> bytes:
        """Return the last answer of the connection as it is sent."""
        headers, reason = answer.raw_headers(last=True), answer.status[4:]
        head = h11.Response(status_code=answer.code, headers=headers, reason=reason)
        data = h11.Data(data=b"" if self._bare else answer.body)
        return b"".join(self.send(each) or b"" for each in (head, data, h11.EndOfMessage()))


def _problem(request: h11.Request) -> tuple[HTTPStatus, str] | None:
    """Say what is wrong with a head."""
    names = [name for name, _ in request.headers]
    sized, chunked = b"content-length" in names, b"transfer-encoding" in names
    bad = HTTPStatus.BAD_REQUEST
    if request.http_version not in {b"1.0", b"1.1"}:
        return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 is spoken here"
    if sum(len(name) + len(value) for name, value in request.headers) > HEAD_BYTES:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too long"
    if chunked and sized:
        return bad, "a body has a Content-Length or a Transfer-Encoding, not both"
    if chunked and request.http_version < b"1.1":
        return bad, "a Transfer-Encoding needs HTTP/1.1"
    if any(names.count(name) > 1 for name in _ONCE):
        return bad, "a header that may be there once is repeated"
    if not sized and not chunked and request.method in _WITH_BODY:
        return HTTPStatus.LENGTH_REQUIRED, "a body needs a Content-Length"
    # A quoted slash has no meaning here, and hides where a path's parts end.
    if not _PLAIN_PATH.match(request.target.partition(b"?")[0]):
        return bad, "this is not a path"
    return None
