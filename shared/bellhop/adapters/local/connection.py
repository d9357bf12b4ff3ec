"""One client's connection: its requests are read by the loop, and worked on by threads.

    accepted ──► handshake ──► head ──► admit ──► turn ──► body ──► app ──► answer
                 └── STRANGER_SECONDS ──┘  (thread)        └─┬─┘   (thread)   │
                                                        BODY_SECONDS          └──► next head
                                                                                  IDLE_SECONDS

A thread is taken only for what has arrived: to look at a head, and to work on a whole request.
So who is slow, or stops half-way, costs a file descriptor until the deadline, and nothing else.
Nothing is read of a body before its head was let in. After a refusal the connection ends; what is
still on its way is thrown away for a second, so that the answer is not lost with it.

h11 reads HTTP, strictly; what it lets pass and we do not is in `_problem`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any, Protocol, cast

import h11

from bellhop.adapters.local.crowd import Crowd, Turns
from bellhop.adapters.local.wsgi import (
    Admission,
    Answer,
    App,
    Environ,
    environ_of,
    guard_of,
    path_of,
    refusal,
    run,
)
from bellhop.logs import Log

HEAD_BYTES = 65_536
"""The longest head of a request: a token of a service account takes 2 KB."""

STRANGER_SECONDS = 10.0
"""How long a client may take for handshake and head, until it has shown who it is; each further
head may take as long."""

BODY_SECONDS = 30.0
"""How long the body of a request that was let in may take: 4 MiB at 140 KB/s."""

ANSWER_SECONDS = 10.0
"""How long a client may take to read an answer."""

IDLE_SECONDS = 120.0
"""How long a sender's connection is kept between requests; API servers let go after 90."""

LINGER_SECONDS = 1.0
LINGER_BYTES = 4 * 1024 * 1024
"""For how long, and how much of, what a refused client still sends is thrown away."""

PIECES = 5_000
"""Into how many chunks a body may be cut."""

_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
_ONCE = frozenset({b"authorization", b"content-type", b"host", b"transfer-encoding"})
_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})


class House(Protocol):
    """What connections share."""

    app: App
    crowd: Crowd
    turns: Turns
    log: Log
    loop: asyncio.AbstractEventLoop
    port: int
    stopping: bool

    def work(self, job: Callable[[], None]) -> None:
        """Have a thread do something."""
        ...

    def tell(self, callback: Callable[..., object], *arguments: object) -> None:
        """Have the loop do something; from any thread."""
        ...

    def left(self, guest: Connection) -> None:
        """Note that a connection has ended."""
        ...

    def failed(self, why: str) -> None:
        """Note that a client misbehaved."""
        ...


class _Phase(Enum):
    HEAD = "waiting for a head, or reading one"
    ADMIT = "asking who it is"
    TURN = "waiting for its sender's other requests"
    BODY = "reading the body"
    WORK = "the app is at work"
    DRAIN = "waiting until answers are read"
    LEAVE = "answered for the last time"


class Connection(asyncio.Protocol):
    """Everything here runs in the loop's thread, except for the methods named `_in_thread_…`."""

    def __init__(self, house: House, peer: str, *, secure: bool) -> None:
        self.peer = peer
        self._house = house
        self._secure = secure
        self._admit = guard_of(house.app)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._transport: asyncio.Transport
        self.greeting: asyncio.Task[None] | None = None
        self._since = house.loop.time()
        self._here = False
        self._timer: asyncio.TimerHandle | None = None
        self._phase = _Phase.HEAD
        self._lost = False
        self._known = False
        self._thrown_away = 0
        self._paused = False
        self._forget_request()

    def _forget_request(self) -> None:
        self._environ: Environ = {}
        self._bare = False
        self._length: int | None = 0
        self._admission: Admission | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._whole = False
        self._turn = False

    # What the transport tells ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a head."""
        self._transport = cast("asyncio.Transport", transport)
        self._here = True
        if self._lost:
            self._transport.abort()
        spent = self._house.loop.time() - self._since
        self._until(max(0.0, STRANGER_SECONDS - spent), self._late)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._phase is _Phase.LEAVE:
            self._thrown_away += len(data)
            if self._thrown_away > LINGER_BYTES:
                self._transport.abort()
            return
        if self._phase is _Phase.HEAD and self._known and not self._http.trailing_data[0]:
            self._until(STRANGER_SECONDS, self._late)
        self._http.receive_data(data)
        self._read()

    def eof_received(self) -> bool:
        """Note that nothing more comes; an answer that is due can still be written."""
        if self._phase is _Phase.LEAVE:
            return False
        self._http.receive_data(b"")
        self._read()
        return not self._secure and self._phase in {_Phase.ADMIT, _Phase.TURN, _Phase.WORK}

    def connection_lost(self, _: Exception | None) -> None:
        """Forget everything that is not in a thread's hands."""
        self._lost = True
        self._no_deadline()
        self._house.left(self)
        if self._phase is _Phase.TURN and self._admission:
            # Where the turn has come already, `_go_on` is on its way and gives it back.
            self._house.turns.give_up(self._admission.sender, self._called)
        elif self._phase is _Phase.BODY:
            self._end_turn()

    def pause_writing(self) -> None:
        """Let no client collect answers in our memory without reading them."""
        self._paused = True

    def resume_writing(self) -> None:
        """Go on once they are read."""
        self._paused = False
        if self._phase is _Phase.DRAIN:
            self._next()

    def drop(self) -> None:
        """End at once, in the middle of a handshake too."""
        if self._here:
            self._transport.abort()
        elif self.greeting is not None:
            self._lost = True
            self.greeting.cancel()

    def stop(self) -> None:
        """End, after the request that is under way if there is one."""
        if not self._here or self._phase is _Phase.HEAD:
            self.drop()

    # Reading ---------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            while self._phase in {_Phase.HEAD, _Phase.BODY} and not self._whole:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    break
                self._take(event)
        except h11.RemoteProtocolError as error:
            hint = error.error_status_hint
            status = HTTPStatus(hint) if hint in set(HTTPStatus) else HTTPStatus.BAD_REQUEST
            self._refuse(status, "this is not a request that is understood here")
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is not a request that is understood here")

    def _take(self, event: Any) -> None:
        if isinstance(event, h11.Request):
            self._begin(event)
        elif isinstance(event, h11.Data):
            self._collect(event)
        elif isinstance(event, h11.EndOfMessage):
            self._whole = True
            self._ask_app()
        elif isinstance(event, h11.ConnectionClosed):
            self._leave(None)

    def _begin(self, request: h11.Request) -> None:
        # What is refused by its head has no environ yet, and an answer all the same.
        self._bare = request.method == b"HEAD"
        problem, self._length = _problem(request)
        path = path_of(request.target)
        if problem is not None:
            self._refuse(*problem)
            return
        if path is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is not a path")
            return
        scheme = "https" if self._secure else "http"
        self._environ = environ_of(request, path, scheme, self.peer, self._house.port)
        self._phase = _Phase.ADMIT
        self._no_deadline()
        self._transport.pause_reading()
        if self._came_with_head():
            self._house.work(self._in_thread_admit_and_serve)
        else:
            self._house.work(self._in_thread_admit)

    def _came_with_head(self) -> bool:
        """Say whether the body is here already; it then takes one thread's way, not two."""
        waiting = len(self._http.trailing_data[0])
        self._whole = self._length is not None and self._length <= waiting
        while self._whole:
            event = self._http.next_event()
            if isinstance(event, h11.EndOfMessage):
                break
            if isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
                self._size += len(event.data)
        return self._whole

    def _collect(self, event: h11.Data) -> None:
        admission = self._admission or Admission()
        self._body.append(bytes(event.data))
        self._size += len(event.data)
        if self._size > admission.limit:
            self._refuse(_TOO_LARGE, _over(admission.limit))
        elif self._length is None and len(self._body) > PIECES:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the body comes in more than {PIECES} chunks")

    # Working ---------------------------------------------------------------------------------

    def _in_thread_admit(self) -> None:
        self._house.tell(self._admitted, self._asked())

    def _in_thread_admit_and_serve(self) -> None:
        found = self._asked()
        if isinstance(found, Admission) and self._size <= found.limit:
            self._admission = found
            self._turn = bool(found.sender) and self._house.turns.take(found.sender)
            if self._turn or not found.sender:
                self._in_thread_serve()
                return
        self._house.tell(self._admitted, found)

    def _in_thread_serve(self) -> None:
        try:
            answer = run(self._house.app, self._environ, b"".join(self._body))
        except Exception as error:  # noqa: BLE001 - a server answers whatever happens in its app
            answer = self._failed(error)
        self._house.tell(self._answered, answer)

    def _asked(self) -> Admission | Answer:
        try:
            return self._admit(self._environ)
        except Exception as error:  # noqa: BLE001 - as above
            return self._failed(error)

    def _failed(self, error: Exception) -> Answer:
        self._house.log.error("The server failed", error=error)
        return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "the request could not be answered")

    def _admitted(self, found: Admission | Answer) -> None:
        if self._lost:
            return
        if isinstance(found, Answer):
            self._leave(found)
            return
        self._admission = found
        if max(self._length or 0, self._size) > found.limit:
            self._refuse(_TOO_LARGE, _over(found.limit))
            return
        self._phase = _Phase.TURN
        if not found.sender or self._house.turns.take(found.sender, self._called):
            self._go_on()

    def _called(self) -> None:
        """Hear, in any thread, that it is this request's turn."""
        self._house.tell(self._go_on)

    def _go_on(self) -> None:
        self._turn = bool(self._admission and self._admission.sender)
        if self._lost:
            self._end_turn()
        elif self._whole:
            self._ask_app()
        else:
            self._phase = _Phase.BODY
            self._until(BODY_SECONDS, self._late)
            if self._http.they_are_waiting_for_100_continue:
                proceed = h11.InformationalResponse(status_code=100, headers=[])
                self._transport.write(self._http.send(proceed) or b"")
            self._transport.resume_reading()
            self._read()

    def _ask_app(self) -> None:
        self._phase = _Phase.WORK
        self._no_deadline()
        self._transport.pause_reading()
        self._house.work(self._in_thread_serve)

    def _end_turn(self) -> None:
        if self._turn and self._admission:
            self._turn = False
            self._house.turns.end(self._admission.sender)

    # Answering -------------------------------------------------------------------------------

    def _answered(self, answer: Answer) -> None:
        self._end_turn()
        if self._lost:
            return
        # Some can be judged only with their body: who is refused then has proved nothing.
        refused = answer.code == HTTPStatus.UNAUTHORIZED
        if self._admission and self._admission.sender and not refused:
            self._known = True
            self._house.crowd.proved(self)
        try:
            more = self._send(answer, last=self._house.stopping)
        except h11.LocalProtocolError as error:
            self._house.log.error("The server failed", error=error)  # noqa: TRY400 - our log
            self._transport.abort()
            return
        if more:
            self._next()
        else:
            self._leave(None)

    def _send(self, answer: Answer, *, last: bool) -> bool:
        """Write an answer; say whether another request may follow."""
        headers = [each for each in answer.headers if each[0].lower() != "content-length"]
        headers += [("Content-Length", str(len(answer.body)))]
        if not any(name.lower() == "date" for name, _ in headers):
            headers += [("Date", formatdate(usegmt=True))]
        headers += [("Connection", "close")] if last else []
        response = h11.Response(status_code=answer.code, headers=headers, reason=answer.status[4:])
        written = [self._http.send(response)]
        written += [] if self._bare else [self._http.send(h11.Data(data=answer.body))]
        written += [self._http.send(h11.EndOfMessage())]
        self._transport.write(b"".join(each or b"" for each in written))
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _next(self) -> None:
        """Wait for the next request, or begin with the one that is here already."""
        if self._paused:
            self._phase = _Phase.DRAIN
            self._until(ANSWER_SECONDS, self._transport.abort)
            return
        self._http.start_next_cycle()
        self._forget_request()
        self._phase = _Phase.HEAD
        begun = any(self._http.trailing_data)
        self._until(IDLE_SECONDS if self._known and not begun else STRANGER_SECONDS, self._late)
        self._transport.resume_reading()
        if begun:
            self._house.loop.call_soon(self._read)

    def _late(self) -> None:
        if self._phase is _Phase.HEAD and not self._http.trailing_data[0]:
            self._transport.abort()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive in time")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._house.failed(why)
        self._leave(refusal(status, why))

    def _leave(self, answer: Answer | None) -> None:
        """Answer for the last time; what the client still sends must not cost it the answer."""
        self._end_turn()
        self._phase = _Phase.LEAVE
        self._body.clear()
        if answer is not None and self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send(answer, last=True)
        self._until(LINGER_SECONDS, self._transport.abort)
        if self._http.their_state in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED}:
            self._transport.close()
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()

    # Deadlines -------------------------------------------------------------------------------

    def _until(self, seconds: float, then: Callable[[], None]) -> None:
        self._no_deadline()
        self._timer = self._house.loop.call_later(seconds, then)

    def _no_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _problem(request: h11.Request) -> tuple[tuple[HTTPStatus, str] | None, int | None]:
    """Say what is wrong with a head, and how long its body is; None where it does not say.

    A proxy before us that believes the other of two lengths would take somebody's body for
    the next request.
    """
    names = [name for name, _ in request.headers]
    length = next((value for name, value in request.headers if name == b"content-length"), None)
    chunked = b"transfer-encoding" in names
    bad = HTTPStatus.BAD_REQUEST
    if request.http_version not in {b"1.0", b"1.1"}:
        return (HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 is spoken here"), 0
    if sum(len(name) + len(value) for name, value in request.headers) > HEAD_BYTES:
        return (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too long"), 0
    if chunked and length is not None:
        return (bad, "a body has a Content-Length or a Transfer-Encoding, not both"), 0
    if chunked and request.http_version < b"1.1":
        return (bad, "a Transfer-Encoding needs HTTP/1.1"), 0
    if any(names.count(name) > 1 for name in _ONCE):
        return (bad, "a header that may be there once is repeated"), 0
    if length is None and not chunked and request.method in _WITH_BODY:
        return (HTTPStatus.LENGTH_REQUIRED, "a body needs a Content-Length"), 0
    return None, None if chunked else int(length or 0)


def _over(limit: int) -> str:
    return f"a body has at most {limit} bytes here; send less at once"
