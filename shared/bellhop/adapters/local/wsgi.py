"""Between HTTP and an app: WSGI, and who is let in before a byte of a body is read."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Protocol, runtime_checkable
from urllib.parse import unquote_to_bytes

import h11

from bellhop.frozen import frozen

Environ = dict[str, Any]
App = Callable[[Environ, Any], Iterable[bytes]]
"""A WSGI application. One that is `Guarded`, too, says who is let in."""

BODY_BYTES = 4 * 1024 * 1024
"""The longest body for an app that is not guarded."""

_QUOTED_SLASH = re.compile(rb"%2f", re.IGNORECASE)


@frozen
class Admission:
    """Who is let in, and how long its body may be; a `sender` with a name waits for its turn."""

    sender: str = ""
    limit: int = BODY_BYTES


@frozen
class Answer:
    """What an app has to say."""

    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def code(self) -> int:
        """Return the status as a number."""
        return int(self.status[:3])


@runtime_checkable
class Guarded(Protocol):
    """An app that looks at a request's head before its body is read."""

    def admit(self, environ: Environ) -> Admission | Answer:
        """Let a request in, or answer it at once; what it adds to `environ` the app will find."""
        ...


def guard_of(app: App) -> Callable[[Environ], Admission | Answer]:
    """Return who is asked for admission: the app, or else everybody is let in."""
    return app.admit if isinstance(app, Guarded) else lambda _: Admission()


def refusal(status: HTTPStatus, why: str) -> Answer:
    """Return an answer that is one sentence."""
    body = why.encode() + b"\n"
    headers = (("Content-Type", "text/plain"), ("Content-Length", str(len(body))))
    return Answer(f"{status.value} {status.phrase}", headers, body)


def path_of(target: bytes) -> str | None:
    """Return the path of a request's target as WSGI has it; None where it is not a plain one.

    A quoted slash has no meaning here, and hides where a path's parts end.
    """
    path = target.partition(b"?")[0]
    if not path.startswith(b"/") or _QUOTED_SLASH.search(path):
        return None
    return unquote_to_bytes(path).decode("latin-1")


def environ_of(request: h11.Request, path: str, scheme: str, peer: str, port: int) -> Environ:
    """Return a request's head as WSGI has it; the input is empty until there is a body."""
    environ: Environ = {
        "REQUEST_METHOD": request.method.decode("latin-1"),
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": request.target.partition(b"?")[2].decode("latin-1"),
        "REMOTE_ADDR": peer,
        "SERVER_NAME": "bellhop",
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{request.http_version.decode('latin-1')}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers:
        # `X_Y` and `X-Y` would be one name in here: the odd one is nobody's.
        if b"_" not in name and name not in {b"content-length", b"transfer-encoding"}:
            key = name.decode("latin-1").upper().replace("-", "_")
            key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]}, {text}" if key in environ else text
        elif name == b"content-length":
            environ["CONTENT_LENGTH"] = value.decode("latin-1")
    return environ


def run(app: App, environ: Environ, body: bytes) -> Answer:
    """Have an app answer; what it raises is the caller's to answer."""
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    begun: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    pieces: list[bytes] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _: Any = None
    ) -> Callable[[bytes], None]:
        begun.append((status, tuple(headers)))
        return pieces.append

    answer = app(environ, start_response)
    try:
        pieces += answer
    finally:
        if hasattr(answer, "close"):
            answer.close()
    status, headers = begun[-1]
    return Answer(status, headers, b"".join(pieces))
