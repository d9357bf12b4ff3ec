"""The HTTPS server of the embedded mode and of the forwarder: any WSGI app, in a thread.

One thread runs a loop that accepts, shakes hands and reads; a few others work on what has arrived
whole. `connection` tells how one client is kept from harming the others, `crowd` how many are.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from bellhop.adapters.local import connection as rules
from bellhop.adapters.local import tls
from bellhop.adapters.local.connection import Connection
from bellhop.adapters.local.crowd import CONNECTIONS, Crowd, Turns
from bellhop.adapters.local.wsgi import App
from bellhop.errors import BellhopError, ConflictError, DeniedError, InvalidError
from bellhop.logs import Log

STOP_SECONDS = 10.0
"""How long requests may take to finish when the server stops."""

_BACKLOG = 512
_SAY_SECONDS = 60.0
_FULL_SECONDS = 0.1
_SHARE_OF_FILES = 0.75
_FAILURES: dict[int, tuple[type[BellhopError], str]] = {
    errno.EADDRINUSE: (ConflictError, "another process listens there. Choose another port"),
    errno.EACCES: (DeniedError, "ports below 1024 need rights. Choose another port"),
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
        context = tls.make_context(certificate_pem, key_pem or b"") if certificate_pem else None
        self._house = _House(app, context, threads, log or Log())
        self._thread = threading.Thread(target=self._serve, name="bellhop-server", daemon=True)
        self._listener: socket.socket | None = None

    @property
    def port(self) -> int:
        """Return the port that is listened on; the one asked for until the server starts."""
        return self._port

    @property
    def url(self) -> str:
        """Return where the server answers."""
        scheme = "https" if self._house.context else "http"
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
        self._port = self._house.port = self._listener.getsockname()[1]
        self._thread.start()
        self._house.ready.wait()

    def renew(self, certificate_pem: bytes, key_pem: bytes) -> None:
        """Use another certificate for the connections to come.

        Raises:
            InvalidError: the certificate and its key cannot be used, or the server has no TLS.
        """
        if self._house.context is None:
            raise InvalidError("cannot renew the certificate: the server has no TLS")
        # Another context, not this one loaded anew: between its certificate and its key, who
        # shakes hands at that moment would be refused.
        self._house.context = tls.make_context(certificate_pem, key_pem)

    def stop(self) -> None:
        """Accept no more, let the requests under way finish, and close; a second time is fine."""
        if self._thread.ident is None:
            return
        self._house.stop()
        self._thread.join()

    def _serve(self) -> None:
        assert self._listener is not None
        with self._listener:
            asyncio.run(self._house.run(self._listener))
        self._house.threads.shutdown(wait=True, cancel_futures=True)


class _House:
    """What the connections of one server share: the loop, the threads, and who is here."""

    def __init__(self, app: App, context: ssl.SSLContext | None, threads: int, log: Log) -> None:
        self.app = app
        self.context = context
        self.log = log
        self.port = 0
        self.crowd = Crowd(_most_connections())
        self.turns = Turns()
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="bellhop-request")
        self.ready = threading.Event()
        self.stopping = False
        self.loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event
        self._changed: asyncio.Event
        self._misbehaved = 0
        self._said_at = float("-inf")

    async def run(self, listener: socket.socket) -> None:
        """Serve until stopped."""
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self._unforeseen)
        self._end, self._changed = asyncio.Event(), asyncio.Event()
        self._listen(listener)
        self.ready.set()
        await self._end.wait()
        self.loop.remove_reader(listener)
        # Whoever still waits to be accepted is told by the end of the listener.
        listener.close()
        for guest in self.crowd.everybody():
            guest.stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._empty(), STOP_SECONDS)
        for guest in self.crowd.everybody():
            guest.drop()
        await asyncio.sleep(0)

    def stop(self) -> None:
        """End, from another thread."""
        if not self.stopping:
            self.stopping = True
            self.tell(self._end.set)

    def work(self, job: Callable[[], None]) -> None:
        """Have a thread do something."""
        self.threads.submit(job)

    def tell(self, callback: Callable[..., object], *arguments: object) -> None:
        """Have the loop do something; from any thread."""
        with suppress(RuntimeError):
            # The loop is closed: nobody waits for this any more.
            self.loop.call_soon_threadsafe(callback, *arguments)

    def left(self, guest: Connection) -> None:
        """Note that a connection has ended."""
        self.crowd.leave(guest)
        self._changed.set()

    def failed(self, why: str) -> None:
        """Say that clients misbehave, once a minute: who fills our log must not fill our disk."""
        self._misbehaved += 1
        now = time.monotonic()
        if now - self._said_at >= _SAY_SECONDS:
            self.log.warning("A client's connection failed", why=why, times=self._misbehaved)
            self._said_at = now
            self._misbehaved = 0

    def _listen(self, listener: socket.socket) -> None:
        if not self.stopping:
            self.loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_BACKLOG):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                # Too many files are open: some will be closed.
                self.failed(f"it could not be accepted: {error.strerror}")
                self.loop.remove_reader(listener)
                self.loop.call_later(_FULL_SECONDS, self._listen, listener)
                return
            accepted.setblocking(False)  # noqa: FBT003 - the socket's own word
            guest = Connection(self, str(address[0]), secure=self.context is not None)
            self.crowd.enter(guest)
            guest.greeting = self.loop.create_task(self._greet(guest, accepted))
            guest.greeting.add_done_callback(partial(self._greeted, guest, accepted))

    async def _greet(self, guest: Connection, accepted: socket.socket) -> None:
        """Shake hands: in the loop, so that one who does it slowly holds up nobody."""
        times: dict[str, float] = {}
        if self.context is not None:
            times = {
                "ssl_handshake_timeout": rules.STRANGER_SECONDS,
                "ssl_shutdown_timeout": rules.LINGER_SECONDS,
            }
        try:
            await self.loop.connect_accepted_socket(
                lambda: guest, accepted, ssl=self.context, **times
            )
        except OSError as error:
            self.left(guest)
            reason = getattr(error, "reason", "") or type(error).__name__
            self.failed(f"TLS handshake: {reason}")

    def _greeted(
        self, guest: Connection, accepted: socket.socket, greeting: asyncio.Task[None]
    ) -> None:
        """Tidy up after a greeting that was called off, maybe before it began."""
        if greeting.cancelled():
            accepted.close()
            self.left(guest)

    async def _empty(self) -> None:
        while len(self.crowd):
            self._changed.clear()
            await self._changed.wait()

    def _unforeseen(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError):
            self.failed(type(error).__name__)
        else:
            self.log.error(
                "The server failed",
                error=error if isinstance(error, Exception) else None,
                why=str(context.get("message", "")),
            )


def _listen(host: str, port: int) -> socket.socket:
    [family, _, _, _, address] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # Only of what is said to be TCP does asyncio send small answers at once (TCP_NODELAY): else
    # the first one of a connection waits until the client acknowledges the handshake, for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
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
