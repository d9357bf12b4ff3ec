"""The contract between HTTP server and apps: WSGI, and admission by the head of a request."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

Environ = dict[str, Any]
App = Callable[[Environ, Any], Iterable[bytes]]
"""A WSGI application. One that is `Guarded`, too, says who is admitted."""

BODY_BYTES = 4 * 1024 * 1024
"""The longest body for an app that is not guarded."""


class Admission(Struct, frozen=True):
    """An admitted request: its longest body; requests of a named `sender` wait for each other."""

    sender: str = ""
    limit: int = BODY_BYTES


class Answer(Struct, frozen=True):
    """The response of an app."""

    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def code(self) -> int:
        """Return the status as a number."""
        return int(self.status[:3])

    def raw_headers(self, *, last: bool) -> list[tuple[bytes, bytes]]:
        """Return the headers as they are sent; the last answer of a connection says so."""
        given = [(name.lower(), value) for name, value in self.headers]
        given = [each for each in given if each[0] != "content-length"]
        given += [] if "date" in dict(given) else [("date", formatdate(usegmt=True))]
        given += [("content-length", str(len(self.body)))]
        given += [("connection", "close")] if last else []
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]


@runtime_checkable
class Guarded(Protocol):
    """An app that looks at a request's head before its body is read."""

    def admit(self, environ: Environ) -> Admission | Answer:
        """Admit a request, or answer it at once; what it adds to `environ` the app will find."""
        ...


def refusal(status: HTTPStatus, why: str) -> Answer:
    """Return an answer that is one sentence."""
    headers = (("Content-Type", "text/plain"),)
    return Answer(f"{status.value} {status.phrase}", headers, why.encode() + b"\n")


def run(app: App, environ: Environ, body: bytes) -> Answer:
    """Have a WSGI app answer; what it raises is the caller's to answer."""
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    begun: list[tuple[str, list[tuple[str, str]]]] = []
    pieces: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> Any:
        begun.append((status, headers))
        return pieces.append

    answer = app(environ, start_response)
    try:
        pieces += answer
    finally:
        if hasattr(answer, "close"):
            answer.close()
    status, headers = begun[-1]
    return Answer(status, tuple(headers), b"".join(pieces))
