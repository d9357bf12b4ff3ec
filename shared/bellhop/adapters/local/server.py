"""The HTTPS server of the embedded mode: any WSGI app, in a thread.

cheroot does HTTP; what is here keeps one client from harming the others:

- a connection waits for its first byte, and between requests, in a selector and not in a worker;
- a request's head must arrive within HEAD_SECONDS in all, the handshake included, each further
  read and write within IO_SECONDS;
- heads are limited to HEAD_BYTES; bodies are the app's to limit.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from cheroot.server import HTTPConnection, HTTPRequest
from cheroot.wsgi import Server as WsgiServer

from bellhop.adapters.local import tls
from bellhop.errors import BellhopError, ConflictError, DeniedError, InvalidError
from bellhop.logs import Log

HEAD_BYTES = 65_536
"""The longest head of a request: a token of a service account takes 2 KB."""

HEAD_SECONDS = 15.0
"""How long a client may take to send a request's head."""

IO_SECONDS = 15.0
"""How long one read or write may wait for the client."""

IDLE_SECONDS = 120
"""How long a connection is kept between requests; Kubernetes API servers let go after 90."""

STOP_SECONDS = 10
"""How long requests may take to finish when the server stops."""

CONNECTIONS = 2_000
"""How many connections are kept between requests."""

_BACKLOG = 512
_WATCH_SECONDS = 1.0
_FAILURES: dict[int, tuple[type[BellhopError], str]] = {
    errno.EADDRINUSE: (ConflictError, "another process listens there. Choose another port"),
    errno.EACCES: (DeniedError, "ports below 1024 need rights. Choose another port"),
}

App = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""


class Server:
    """A WSGI app on HTTPS or, without a certificate and on loopback only, on HTTP.

    Raises:
        InvalidError: there is no certificate and the host is not loopback, or the certificate
            and its key cannot be used.
    """

    def __init__(
        self,
        app: App,
        *,
        host: str,
        port: int,
        certificate_pem: bytes | None = None,
        key_pem: bytes | None = None,
        threads: int = 32,
        log: Log | None = None,
    ) -> None:
        if not certificate_pem and not _is_loopback(host):
            raise InvalidError(
                f"The server could not be set up on {host!r}: without a certificate it listens "
                "on 127.0.0.1 only. Give it a certificate and its key."
            )
        self._host = host
        self._server = _Server((host, port), app, threads, log or Log())
        self._thread = threading.Thread(target=self._serve, name="bellhop-server", daemon=True)
        if certificate_pem:
            context = tls.make_context(certificate_pem, key_pem or b"")
            self._server.ssl_adapter = tls.TlsAdapter(context)

    @property
    def port(self) -> int:
        """Return the port that is listened on; the one asked for until the server starts."""
        port: int = self._server.bind_addr[1]
        return port

    @property
    def url(self) -> str:
        """Return where the server answers."""
        scheme = "https" if self._server.ssl_adapter else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self.port}"

    def start(self) -> None:
        """Listen, and serve in threads; once this returns, clients can connect.

        Raises:
            ConflictError: something else listens there.
            DeniedError: this user may not listen there.
            InvalidError: there is no such address here.
        """
        try:
            self._server.prepare()
        except OSError as error:
            kind, why = _FAILURES.get(
                self._server.refusal, (InvalidError, "this machine has no such address")
            )
            raise kind(
                f"The address '{self._host}:{self.port}' could not be listened on: {why}."
            ) from error
        self._thread.start()

    def renew(self, certificate_pem: bytes, key_pem: bytes) -> None:
        """Use another certificate for the connections to come.

        Raises:
            InvalidError: the certificate and its key cannot be used, or the server has no TLS.
        """
        if self._server.ssl_adapter is None:
            raise InvalidError("The certificate could not be renewed: the server has no TLS.")
        # Another context, not this one loaded anew: between its certificate and its key, who
        # shakes hands at that moment would be refused.
        self._server.ssl_adapter.context = tls.make_context(certificate_pem, key_pem)

    def stop(self) -> None:
        """Accept no more, let the requests under way finish, and close; a second time is fine."""
        self._server.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _serve(self) -> None:
        watch = threading.Thread(target=self._server.watch, name="bellhop-watch", daemon=True)
        watch.start()
        self._server.serve()
        watch.join()


class _Request(HTTPRequest):
    def parse_request(self) -> None:
        self.conn.reading_since = time.monotonic()
        try:
            super().parse_request()
        finally:
            self.conn.reading_since = None


class _Connection(HTTPConnection):
    RequestHandlerClass = _Request
    reading_since: float | None = None
    shaken = False

    def communicate(self) -> bool:
        """Serve one request, or shake hands first; say whether the connection is to be kept."""
        if isinstance(self.socket, ssl.SSLSocket) and not self.shaken:
            # Then back to the selector: who connects and asks nothing yet takes no worker.
            return self._shake_hands(self.socket)
        return bool(super().communicate())  # type: ignore[no-untyped-call]

    def _shake_hands(self, secure: ssl.SSLSocket) -> bool:
        self.reading_since = time.monotonic()
        try:
            secure.do_handshake()
        except ssl.SSLEOFError:
            return False
        except ssl.SSLError as error:
            self.server.error_log(f"TLS handshake: {error.reason}", level=logging.WARNING)
            return False
        except OSError:
            return False
        finally:
            self.reading_since = None
        self.shaken = True
        return True

    def close(self) -> None:
        self.server.forget(self)
        super().close()


class _Server(WsgiServer):
    ConnectionClass = _Connection
    expiration_interval = 0.25
    keep_alive_conn_limit = CONNECTIONS
    max_request_header_size = HEAD_BYTES

    def __init__(self, address: tuple[str, int], app: App, threads: int, log: Log) -> None:
        super().__init__(
            address,
            app,
            numthreads=threads,
            max=threads,
            server_name="bellhop",
            request_queue_size=_BACKLOG,
            timeout=IDLE_SECONDS,
            shutdown_timeout=STOP_SECONDS,
        )
        self._log = log
        self._busy: set[_Connection] = set()
        self.refusal = 0
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        super().stop()

    def bind_socket(  # type: ignore[override]  # static there, always called on an instance
        self, socket_: socket.socket, bind_addr: tuple[str, int]
    ) -> socket.socket:
        try:
            socket_.bind(bind_addr)
        except OSError as error:
            # cheroot loses both the socket and the number.
            socket_.close()
            self.refusal = error.errno or 0
            raise
        return socket_

    def process_conn(self, conn: _Connection) -> None:
        if conn.last_used is None:
            # Just accepted. `timeout` is how long it may idle; a single read may take less.
            conn.socket.settimeout(IO_SECONDS)
            self.put_conn(conn)
            return
        self._busy.add(conn)
        super().process_conn(conn)

    def put_conn(self, conn: _Connection) -> None:
        self.forget(conn)
        super().put_conn(conn)

    def forget(self, conn: _Connection) -> None:
        """No longer count a connection as one that a worker has, or will have."""
        self._busy.discard(conn)

    def watch(self) -> None:
        """Cut those off that take too long over a request's head, until the server stops."""
        while not self._stopping.wait(_WATCH_SECONDS):
            latest = time.monotonic() - HEAD_SECONDS
            for conn in tuple(self._busy):
                since = conn.reading_since
                if since is not None and since < latest:
                    with suppress(OSError):
                        conn.socket.shutdown(socket.SHUT_RDWR)

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:  # noqa: FBT001, FBT002 - cheroot's signature
        if level >= logging.ERROR:
            self._log.error("The server failed", sys.exc_info()[1] if traceback else None, why=msg)
        elif level >= logging.WARNING:
            self._log.warning("A client's connection failed", why=msg)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
