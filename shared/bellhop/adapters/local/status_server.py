"""Probes and metrics over plain HTTP: what a kubelet and a Prometheus ask for, and no secret.

Anyone who reaches the port may connect, so connections are few and short. This is not the uvicorn
of `server`, which wakes ten times a second: an idle forwarder sleeps.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bellhop.errors import InvalidError

MOST = 32
"""Connections at once; for one more the oldest is closed, so that probes always get through."""

SECONDS = 10.0
"""How long a connection may last, whatever its client sends."""

_PAUSE_SECONDS = 0.5
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

Page = Callable[[], tuple[HTTPStatus, str]]


class StatusServer:
    """Answers GET on a few paths, each by calling a function; `purpose` is for the error.

    Raises:
        InvalidError: the address cannot be listened on.
    """

    def __init__(
        self,
        address: tuple[str, int],
        pages: Mapping[str, Page],
        purpose: str,
        seconds: float = SECONDS,
    ) -> None:
        class Handler(_Handler):
            paths = pages

        try:
            self._server = _Server(address, Handler, seconds)
        except (OSError, TypeError) as error:
            # Python has a TypeError for a name that cannot be one of a host.
            why = error.strerror if isinstance(error, OSError) else "it names no host"
            raise InvalidError(
                f"the address '{address[0]}:{address[1]}' cannot be listened on for {purpose}: "
                f"{why}; choose another"
            ) from error
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name=purpose, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def stop(self) -> None:
        self._stopping = True
        # Wakes the thread, which waits for a connection and for nothing else.
        self._server.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.server_close()

    def _serve(self) -> None:
        # `serve_forever` would look ten times a second whether it is to stop.
        while not self._stopping:
            self._server.handle_request()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], seconds: float
    ) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._open: dict[socket.socket, None] = {}
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; pause if there are no files for it, for it stays in the queue."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                time.sleep(_PAUSE_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread; if there are too many, end the oldest one."""
        with self._lock:
            if len(self._open) >= MOST:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _end(oldest)
            self._open[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection until it ends, or its time is over."""
        end = threading.Timer(self._seconds, _end, (request,))
        end.daemon = True
        try:
            end.start()
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._forget(request)

    def _forget(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a probe's client may go away at any point."""


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = 5
    protocol_version = "HTTP/1.1"
    paths: Mapping[str, Page] = {}

    def do_GET(self) -> None:
        """Answer one request."""
        page = self.paths.get(self.path.partition("?")[0])
        status, text = page() if page else (HTTPStatus.NOT_FOUND, "no such page\n")
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep probes out of the log."""
