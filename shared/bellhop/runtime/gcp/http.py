"""HTTP requests of functions-framework, for the ingest stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bellhop.ingest.handler import Ingest
from bellhop.runtime.cloud.http import Answer, Call, IngestHandler
from bellhop.runtime.cloud.ready import Ready
from bellhop.runtime.gcp.resources import Resources, from_environment

if TYPE_CHECKING:
    from flask import Request

Reply = tuple[str, int, dict[str, str]]


class Front:
    """Answers the requests of the ingest function, many at once."""

    def __init__(
        self,
        make: Callable[[Resources], Ingest],
        opening: Callable[[], Resources] = from_environment,
    ) -> None:
        ready = Ready(make, opening)
        self._handler = IngestHandler(ready)

    def __call__(self, request: Request) -> Reply:
        """Answer one request."""
        return _reply(self._handler.answer(_call(request)))

    def hear(self, request: Request) -> Reply:
        """Answer one request of Eventarc: Google lets no other sender in."""
        return _reply(self._handler.hear(_call(request)))


def _reply(answer: Answer) -> Reply:
    return answer.body, answer.status, dict(answer.headers)


def _call(request: Request) -> Call:
    return Call(
        method=request.method,
        path=request.path,
        address=_address(request),
        body=request.get_data,
        headers={name.lower(): value for name, value in request.headers.items()},
        length=request.content_length or 0,
    )


def _address(request: Request) -> str:
    """Return the sender's address: the last one of the list, which Google's proxy has written.

    A sender can write any address before it.
    """
    last = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return last or request.remote_addr or ""
