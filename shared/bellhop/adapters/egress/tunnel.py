"""The way out of another program: a proxy on this machine that leads to one server only.

Helm follows redirects, and looks names up by itself. By this proxy each of its connections goes to
an address that was checked as for our own calls, under the name that the server has; a connection
to any other server is refused. TLS is between the program and the server: the proxy reads nothing.

program ─► CONNECT HOST:PORT ─► is it the server? ─► dial a checked address ─► bytes, both ways
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from bellhop.adapters.egress.answer import Deadline, LimitError
from bellhop.adapters.egress.dialer import NO_DELAY, Dialer, UnknownNameError
from bellhop.adapters.egress.download import origin
from bellhop.errors import InvalidError, UnreachableError

CONNECT_SECONDS = 3.0
"""How long one address may take to accept a connection."""

REFUSED = "cannot reach the server"
"""The first words of a refusal."""

_WHOLE_SECONDS = 30.0
_HEAD_SECONDS = 10.0
_HEAD = 64 << 10
_PIECE = 64 << 10


class Tunnel:
    """A proxy to the server of a URL, while it is entered."""

    def __init__(self, server: str, dialer: Dialer) -> None:
        self._origin = origin(server)
        self._dialer = dialer
        self._lock = threading.Lock()
        self._ended = False
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def address(self) -> str:
        """Return the URL of the proxy."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        """Begin to listen."""
        _start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        """End all connections; the threads that wait for them wake, and close what is theirs."""
        with self._lock:
            self._ended = True
            _end(self._listener, *self._connections)

    def _accept(self) -> None:
        with self._listener, suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                _start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), self._keep(client):
            client.settimeout(_HEAD_SECONDS)
            client.setsockopt(*NO_DELAY)
            try:
                head = _read_head(client)
                server = self._connect(head)
            except LimitError as error:
                client.sendall(_refusal(f"{REFUSED}: {error.words}"))
                return
            with self._keep(server):
                for each in (client, server):
                    each.settimeout(None)
                if head.startswith(b"CONNECT "):
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    server.sendall(head)
                back = _start(_copy, server, client)
                _copy(client, server)
                back.join()

    def _connect(self, head: bytes) -> socket.socket:
        """Connect to the server, if the head of a request names it.

        Raises:
            LimitError: it names another one, or the server cannot be reached.
        """
        if _read_target(head) != self._origin:
            raise LimitError(UnreachableError, "it redirects to another server; none is followed")
        _, host, port = self._origin
        try:
            return self._dialer.dial(host, port, Deadline(_WHOLE_SECONDS), seconds=CONNECT_SECONDS)
        except (UnknownNameError, UnicodeError):
            words = "its host name is not known"
        except TimeoutError:
            words = "it takes no connection in time"
        except OSError:
            words = "the connection is refused or has no route"
        raise LimitError(UnreachableError, words)

    @contextmanager
    def _keep(self, connection: socket.socket) -> Iterator[None]:
        """Close a connection in the end, and end it when the tunnel ends."""
        with connection:
            with self._lock:
                if self._ended:
                    raise OSError
                self._connections.add(connection)
            try:
                yield
            finally:
                with self._lock:
                    self._connections.discard(connection)


def _start(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, name="tunnel", daemon=True)
    thread.start()
    return thread


def _read_head(client: socket.socket) -> bytes:
    """Read the head of a request, and what has come with it."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(_PIECE)
        head += piece
        if not piece or len(head) > _HEAD:
            raise OSError
    return head


def _refusal(words: str) -> bytes:
    """Return an answer whose words a program quotes: its reason, or its text."""
    kind = f"Content-Type: text/plain\r\nContent-Length: {len(words.encode())}"
    return f"HTTP/1.1 502 {words}\r\n{kind}\r\n\r\n{words}".encode()


def _read_target(head: bytes) -> tuple[str, str, int] | None:
    """Return the server that a request to a proxy names."""
    method, _, rest = head.partition(b"\r\n")[0].decode(errors="replace").partition(" ")
    target = rest.partition(" ")[0]
    try:
        return origin(f"https://{target}" if method == "CONNECT" else target)
    except InvalidError:
        return None


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Send on what arrives until it ends; if it breaks off, the other direction does, too."""
    try:
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        _end(source, sink)


def _end(*connections: socket.socket) -> None:
    for each in connections:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
