"""One client's connection: uvicorn's protocol, hardened against clients that mean harm.

    accepted ─► handshake ─► head ─► admit ─► semaphore ─► body ─► app ─► answer ─► next head
                └── HEAD_SECONDS ──┘                   BODY_SECONDS              IDLE_SECONDS

A slow client costs a file descriptor until its deadline. A refusal ends the connection; what is
still on its way is thrown away for a second, or a reset would take the answer.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from bellhop.adapters.local.http_app import Answer, refusal
from bellhop.adapters.local.limiters import ConnectionLimiter
from bellhop.adapters.local.strict_http import StrictConnection

HEAD_SECONDS = 10.0  # for handshake and head, and for each further head
ANSWER_SECONDS = 10.0  # to read an answer
IDLE_SECONDS = 120.0  # between requests of an authenticated sender; API servers close after 90

# For how long, and how much of, what a refused client still sends is thrown away.
LINGER_SECONDS = 1.0
LINGER_BYTES = 4 * 1024 * 1024


@dataclass
class Listener:
    """What the connections of one server share."""

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
        """Count the connection, shake hands, and wait for a head."""
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
