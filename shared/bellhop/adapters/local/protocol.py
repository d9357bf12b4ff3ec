"""One client's connection: uvicorn's protocol, hardened against clients that mean harm.

    accepted ─► handshake ─► head ─► admit ─► semaphore ─► body ─► app ─► answer ─► next head
                └── HEAD_SECONDS ──┘                   BODY_SECONDS              IDLE_SECONDS

A slow client costs a file descriptor until its deadline. A refusal ends the connection; what is
still on its way is thrown away for a second, or a reset would take the answer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from weakref import WeakValueDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bellhop.adapters.local.http_app import Answer, refusal

CONNECTIONS = 2_000
"""Most connections, if the process may open enough files."""

UNPROVEN = 250
"""Most connections of one address that have not authenticated yet."""

AT_ONCE = 8
"""Requests of one sender that are read and served at once; others wait."""


class Connection(Protocol):
    """A connection, from when it is accepted."""

    peer: str

    def drop(self) -> None:
        """Close it at once."""
        ...


class ConnectionLimiter:
    """All connections of a server, in order of arrival or of the last request.

    No client is refused for what others do. Among too many connections, unauthenticated ones are
    closed first: the oldest of the address that has the most, then the connection silent for
    longest.
    """

    def __init__(self, most: int = CONNECTIONS) -> None:
        self._most = most
        self._unproven: dict[str, dict[Connection, None]] = {}
        self._proven: dict[Connection, None] = {}

    def all(self) -> list[Connection]:
        return [*self._proven, *(each for peer in self._unproven.values() for each in peer)]

    def enter(self, connection: Connection) -> None:
        """Count a connection, and close another one where there are too many."""
        of_peer = self._unproven.get(connection.peer, {})
        if len(of_peer) >= UNPROVEN:
            self._drop(of_peer)
        elif len(self._proven) + sum(map(len, self._unproven.values())) >= self._most:
            self._drop(max(self._unproven.values(), key=len, default=self._proven))
        self._unproven.setdefault(connection.peer, {})[connection] = None

    def prove(self, connection: Connection) -> None:
        """Note that an authenticated sender has just used a connection."""
        self.leave(connection)
        self._proven[connection] = None

    def leave(self, connection: Connection) -> None:
        """Count a connection no more; a second time is fine."""
        self._proven.pop(connection, None)
        of_peer = self._unproven.get(connection.peer, {})
        of_peer.pop(connection, None)
        if not of_peer:
            self._unproven.pop(connection.peer, None)

    def _drop(self, some: dict[Connection, None]) -> None:
        oldest = next(iter(some))
        self.leave(oldest)
        oldest.drop()


class SenderLimiter:
    """A semaphore for each sender that has requests."""

    def __init__(self) -> None:
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, sender: str) -> asyncio.Semaphore:
        """Return the semaphore of a sender; a request without a sender waits for no other."""
        found = self._semaphores.get(sender) or asyncio.Semaphore(AT_ONCE)
        if sender:
            self._semaphores[sender] = found
        return found


HEAD_BYTES = 65_536
"""The longest head of a request: a token of a service account takes 2 KB."""

CHUNKS = 5_000
"""Into how many chunks a body may be cut."""

_ONCE = frozenset({b"authorization", b"content-type", b"host", b"transfer-encoding"})
_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})
_PLAIN_PATH = re.compile(rb"/(?!.*%2f)", re.IGNORECASE)


class StrictConnection(h11.Connection):
    """The server's side of one connection; `refusal` says why `next_event` has raised.

    A proxy before us that believes the other of two lengths would take somebody's body for the next
    request.
    """

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


HEAD_SECONDS = 10.0  # for handshake and head, and for each further head
ANSWER_SECONDS = 10.0  # to read an answer
IDLE_SECONDS = 120.0  # between requests of an authenticated sender; API servers close after 90

# For how long, and how much of, what a refused client still sends is thrown away.
LINGER_SECONDS = 1.0
LINGER_BYTES = 4 * 1024 * 1024


@dataclass
class Listener:
    """The state that the connections of one server share."""

    limiter: ConnectionLimiter
    logger: logging.Logger
    context: ssl.SSLContext | None
    stopping: bool = False


class HardenedProtocol(H11Protocol):
    """uvicorn's protocol with TLS of ours, deadlines and limits; `WsgiAdapter` is its app."""

    conn: StrictConnection

    def __init__(self, listener: Listener, **given: Any) -> None:
        super().__init__(**given)
        self.conn = StrictConnection()
        self.logger = listener.logger
        self.app_state = {"connection": self}
        self.waiting: asyncio.Task[None] | None = None
        self._listener = listener
        self._early = b""
        self._half_closed = False
        self._lingering = 0
        self._proven = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, start the handshake, and wait for a head."""
        self.peer, self._socket = str(transport.get_extra_info("peername")[0]), transport
        self.connections.add(self)
        self._listener.limiter.enter(self)
        self._set_deadline(HEAD_SECONDS)
        if self._listener.context is None:
            super().connection_made(transport)
        else:
            self._handshake = self.loop.create_task(self._shake_hands(self._listener.context))
        if self._listener.stopping:
            self.drop()

    async def _shake_hands(self, context: ssl.SSLContext) -> None:
        secured = None
        try:
            secured = await self.loop.start_tls(
                self._socket, self, context, server_side=True, ssl_shutdown_timeout=LINGER_SECONDS
            )
        except OSError as error:
            reason = getattr(error, "reason", "") or type(error).__name__
            self.logger.warning("TLS handshake: %s", reason)
        if secured is None:
            self.connection_lost(None)
            return
        super().connection_made(secured)
        if self._early:
            self.data_received(self._early)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.flow is None:
            # It came with the end of the handshake, and `_shake_hands` goes on next.
            self._early += data
        elif self._lingering:
            self._lingering -= len(data)
            if self._lingering <= 0:
                self.drop()
        else:
            if self._proven and not self.busy and not self.conn.trailing_data[0]:
                self._set_deadline(HEAD_SECONDS)
            super().data_received(data)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Stay open while a whole request waits for its answer; with TLS nothing can."""
        self._half_closed = True
        return self.busy and not self.cycle.more_body and self.scheme == "http"

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what was waited for; a thread at work finishes."""
        self._set_deadline(None)
        self._listener.limiter.leave(self)
        if self.waiting is not None:
            self.waiting.cancel()
        if self.flow is not None:
            super().connection_lost(exc)
        else:
            self.connections.discard(self)
            self._handshake.cancel()

    def on_response_complete(self) -> None:
        """Begin with the next request, or wait for it."""
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if self._half_closed and not self.busy:
            self.transport.close()
        if self.transport.is_closing():
            self._set_deadline(ANSWER_SECONDS)
        elif not self.busy and not self._lingering:
            self._set_deadline(IDLE_SECONDS if self._proven else HEAD_SECONDS)

    def shutdown(self) -> None:
        """Close, after the request that is in flight if there is one."""
        if self.busy:
            self.cycle.keep_alive = False
        elif not self._lingering:
            self.drop()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - `refusal` says more
        """Refuse what is no request, with the status that says why."""
        self.refuse(*self.conn.refusal)

    def _should_upgrade(self) -> bool:
        return False

    @property
    def busy(self) -> bool:
        """Say whether a request is in flight; its client is there then."""
        cycle = self.cycle
        return cycle is not None and not (cycle.response_complete or cycle.disconnected)

    def hold(self) -> None:
        """Read no more of a request that is in flight until its app receives; end the deadline."""
        if self.busy:
            self._set_deadline(None)
            self.flow.pause_reading()

    def prove(self) -> None:
        """Note that the request came from an authenticated sender."""
        self._proven = True
        self._listener.limiter.prove(self)

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer for the last time, with one sentence, and log it."""
        self.logger.warning(why)
        self.close_with(refusal(status, why))

    def close_with(self, answer: Answer) -> None:
        """Answer for the last time."""
        if self.busy:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(self.conn.render(answer))
        if self.conn.their_state in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED}:
            self._set_deadline(ANSWER_SECONDS)
            self.transport.close()
            return
        self._lingering = LINGER_BYTES
        self._set_deadline(LINGER_SECONDS)
        try:
            if self.transport.can_write_eof():
                self.transport.write_eof()
        except OSError:
            # The client has reset the connection.
            self.drop()
        else:
            self.transport.resume_reading()

    def drop(self) -> None:
        """Close at once, in the middle of a handshake too."""
        self._socket.abort()

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, "the head did not arrive in time")
        else:
            self.drop()
