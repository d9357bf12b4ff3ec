"""Small HTTP servers on this machine, each of which stands in for a service or a way to one.

class Echo(HttpServer):
def respond(self, request: Request) -> Response:
return Response(HTTPStatus.OK, request.body)

with Echo() as echo:
…  # at echo.address
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

_STOP_SECONDS = 0.05
_IDLE_SECONDS = 60


@dataclass(frozen=True)
class Request:
    """What was asked: the target is the path with its query, as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """What is answered."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, body: Any) -> Self:
        """Answer in JSON."""
        return cls(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


class HttpServer(ABC):
    """Answers requests by `respond`, each connection in a thread, while it is entered."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._scheme = "https" if tls else "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if tls:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_STOP_SECONDS,))

    @property
    def address(self) -> str:
        """Return the address on which it listens, as a URL without a path."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    @abstractmethod
    def respond(self, request: Request) -> Response | None:
        """Answer a request; None ends its connection without an answer."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(server: HttpServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _IDLE_SECONDS
        wbufsize = -1  # Head and body in one write: a client may wait for a second one for 40 ms.

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            response = server.respond(Request(self.command, self.path, dict(self.headers), body))
            if response is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if response.status != HTTPStatus.NO_CONTENT:
                self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
