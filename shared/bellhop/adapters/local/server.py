"""The HTTPS server of the embedded mode and of the forwarder: a WSGI app on uvicorn, in a thread.

uvicorn accepts, reads and writes in one thread; a few others serve what has arrived whole.
`protocol` keeps one client from harming the others, `limiters` says how many there may be.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import resource
import socket
import ssl
import threading
import time
from functools import partial
from typing import Any, cast

import uvicorn

from bellhop.adapters.local.http_app import App
from bellhop.adapters.local.protocol import (
    CONNECTIONS,
    ConnectionLimiter,
    HardenedProtocol,
    Listener,
)
from bellhop.adapters.local.wsgi import WsgiAdapter
from bellhop.core.key_pair import load_key_pair
from bellhop.errors import BellhopError, ConflictError, DeniedError, InvalidError
from bellhop.logs import Log

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption only; 1.3 has nothing else."""


def make_context(certificate_pem: bytes, key_pem: bytes) -> ssl.SSLContext:
    """Return the context of a server that speaks TLS 1.2 and 1.3.

    Raises:
        InvalidError: certificate and key are not PEM, or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        load_key_pair(context, certificate_pem, key_pem)
    except OSError as error:
        raise InvalidError(
            "cannot use the server's certificate: it or its key is not PEM, or they do not belong"
            " together"
        ) from error
    return context


STOP_SECONDS = 10
"""How long requests may take to finish when the server stops."""

_BACKLOG = 512
_SAY_SECONDS = 60.0
_SHARE_OF_FILES = 0.75
_FAILURES: dict[int, tuple[type[BellhopError], str]] = {
    errno.EADDRINUSE: (
        ConflictError,
        "another process listens there. Choose another port by --listen",
    ),
    errno.EACCES: (DeniedError, "ports below 1024 need rights. Choose another port by --listen"),
}


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
                f"cannot set up the server on {host!r}: without a certificate it listens on"
                " 127.0.0.1 only; give it a certificate and its key"
            )
        self._host = host
        self._port = port
        # For this server only: each has a log of its own.
        logger = logging.Logger("bellhop.server", logging.WARNING)  # noqa: LOG001
        logger.addHandler(_LogHandler(log or Log()))
        context = make_context(certificate_pem, key_pem or b"") if certificate_pem else None
        self._shared = Listener(ConnectionLimiter(_most_connections()), logger, context)
        self._app = WsgiAdapter(app, threads)
        self._uvicorn = uvicorn.Server(_config(self._app, self._shared))
        self._thread = threading.Thread(target=self._run, name="bellhop-server", daemon=True)
        self._listener: socket.socket

    @property
    def port(self) -> int:
        """Return the port that is listened on; the one asked for until the server starts."""
        return self._port

    @property
    def url(self) -> str:
        scheme = "https" if self._shared.context else "http"
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
            self._listener = _listen(self._host, self._port)
        except OSError as error:
            kind, why = _FAILURES.get(
                error.errno or 0, (InvalidError, "this machine has no such address")
            )
            raise kind(f"cannot listen on '{self._host}:{self._port}': {why}") from error
        self._port = self._listener.getsockname()[1]
        self._thread.start()

    def renew(self, certificate_pem: bytes, key_pem: bytes) -> None:
        """Use another certificate for the connections to come.

        Raises:
            InvalidError: the certificate and its key cannot be used, or the server has no TLS.
        """
        if self._shared.context is None:
            raise InvalidError("cannot renew the certificate: the server has no TLS")
        # Another context, not this one loaded again: between its certificate and its key, a
        # handshake would fail.
        self._shared.context = make_context(certificate_pem, key_pem)

    def stop(self) -> None:
        """Accept no more, let requests in flight finish, and close; a second time is fine."""
        if self._thread.ident is not None:
            self._shared.stopping = self._uvicorn.should_exit = True
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())
        self._app.close()

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._log_unforeseen)
        await self._uvicorn.serve(sockets=[self._listener])
        for connection in self._shared.limiter.all():
            connection.drop()
        await asyncio.sleep(0)

    def _log_unforeseen(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError):
            self._shared.logger.warning(error.strerror or type(error).__name__)
        else:
            self._shared.logger.error(context["message"], exc_info=error)


class _LogHandler(logging.Handler):
    """Writes each failure of ours, and misbehaviour of clients once a minute: disks are finite."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log
        self._times = 0
        self._said_at = float("-inf")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it."""
        if record.levelno >= logging.ERROR:
            error = record.exc_info[1] if record.exc_info else None
            self._log.error("The server failed", error=error, why=record.getMessage().strip())
            return
        self._times, now = self._times + 1, time.monotonic()
        if now - self._said_at >= _SAY_SECONDS:
            why = record.getMessage()
            self._log.warning("A client's connection failed", why=why, times=self._times)
            self._times, self._said_at = 0, now


def _config(app: WsgiAdapter, shared: Listener) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(HardenedProtocol, shared)),
        interface="asgi3",
        ws="none",
        lifespan="off",
        workers=1,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        access_log=False,
        log_config=None,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server(
        (host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=host == "::"
    )
    # Connections inherit it. Else the first small answer waits until the client acknowledges the
    # handshake, for 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _most_connections() -> int:
    """Return how many connections there may be: the stores need files, too."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS
    return min(CONNECTIONS, int(files * _SHARE_OF_FILES))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
