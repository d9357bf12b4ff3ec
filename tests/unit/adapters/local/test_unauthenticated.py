"""Clients that mean harm, many at once: nobody else waits for them, and nothing of theirs is read.

Real sockets in real time; what is promised is seconds, what is allowed is many more of them.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellhop.adapters.local import protocol, wsgi
from bellhop.adapters.local import protocol as rules
from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.http_app import Admission, Answer, Environ, refusal
from bellhop.adapters.local.server import Server
from bellhop.logs import Log
from tests.waiting import eventually

SOON = 5.0
"""What is answered in milliseconds; the machine may be busy with other things."""

LIMIT = 1_000_000
THREADS = 4


class Front:
    """Admits requests for `/in`, answers with what they sent, and can be made to wait."""

    def __init__(self) -> None:
        self.asked = 0
        self.served: list[int] = []
        self.open = threading.Event()
        self.open.set()

    def admit(self, environ: Environ) -> Admission | Answer:
        self.asked += 1
        assert environ["wsgi.input"].read() == b""
        if not environ["PATH_INFO"].startswith("/in"):
            return refusal(http.HTTPStatus.NOT_FOUND, "there is nothing here")
        return Admission(environ["PATH_INFO"], LIMIT)

    def __call__(self, environ: Environ, start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read()
        if environ["PATH_INFO"] == "/in/slow":
            self.open.wait(60)
        self.served.append(len(body))
        if environ["PATH_INFO"] == "/in/forged":
            start_response("401 Unauthorized", [("Content-Length", "2")])
            return [b"no"]
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]


class House:
    """A server with its front, and ways to connect to it."""

    def __init__(self, *, secure: bool = False) -> None:
        self.front = Front()
        self.written = io.StringIO()
        now = datetime.now(UTC)
        authority = make_authority("clients", now=now, validity=timedelta(hours=1))
        certificate, key = issue(authority, ["127.0.0.1"], now=now, validity=timedelta(hours=1))
        self.trust = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        self.secure = secure
        self.server = Server(
            self.front,
            host="127.0.0.1",
            port=0,
            certificate_pem=certificate if secure else None,
            key_pem=key if secure else None,
            threads=THREADS,
            log=Log(self.written),
        )
        self.server.start()
        self.sockets = ExitStack()

    def connect(self, sent: bytes = b"") -> socket.socket:
        """Connect, and send bytes as they are."""
        client = socket.create_connection(("127.0.0.1", self.server.port), timeout=30)
        self.sockets.enter_context(client)
        client.sendall(sent)
        return client

    def ask(self, path: str = "/in/friend", body: bytes = b"{}") -> float:
        """Send a request as it should be; return how long the answer took."""
        begun = time.monotonic()
        connection = (
            http.client.HTTPSConnection(
                "127.0.0.1", self.server.port, context=self.trust, timeout=30
            )
            if self.secure
            else http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        )
        connection.request("POST", path, body)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status == 200
        return time.monotonic() - begun

    def answer_to(self, sent: bytes) -> bytes:
        """Return all that is answered, until the connection is closed."""
        return everything(self.connect(sent))

    @property
    def inside(self) -> Any:
        return self.server._shared.limiter

    @property
    def busy(self) -> dict[str, int]:
        """Return how many requests of each sender are read and served."""
        found = dict(self.server._app.senders._semaphores)
        used = {sender: protocol.AT_ONCE - each._value for sender, each in found.items()}
        return {sender: count for sender, count in used.items() if count}

    @property
    def waiting(self) -> dict[str, Any]:
        """Return what waits for requests of the same sender."""
        found = dict(self.server._app.senders._semaphores)
        return {sender: each._waiters for sender, each in found.items() if each._waiters}

    def close(self) -> None:
        self.front.open.set()
        self.sockets.close()
        self.server.stop()


@pytest.fixture
def house() -> Iterator[House]:
    """Serve plain HTTP."""
    house = House()
    yield house
    house.close()


@pytest.fixture
def secure() -> Iterator[House]:
    """Serve HTTPS."""
    house = House(secure=True)
    yield house
    house.close()


def everything(client: socket.socket) -> bytes:
    """Read until the end, which may come as a reset."""
    found = b""
    with suppress(ConnectionError):
        while piece := client.recv(65_536):
            found += piece
    return found


def post(path: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode() + body


def chunked(path: str, body: bytes = b"") -> bytes:
    return post(path, "Transfer-Encoding: chunked", body=body)


STRANGE = [
    pytest.param(b"", id="silence"),
    pytest.param(b"POST /nobody HTTP/1.1\r\nHost: x\r\nX-Drip: ", id="half a head"),
    pytest.param(post("/nobody", "Content-Length: 60000000"), id="a body for nobody"),
    pytest.param(chunked("/nobody", b"5\r\nab"), id="half a chunk for nobody"),
    pytest.param(post("/in/evil", "Content-Length: 900000"), id="the body of a known sender"),
    pytest.param(chunked("/in/evil", b"5\r\nab"), id="half a chunk of a known sender"),
]


@pytest.mark.clocked
@pytest.mark.parametrize("count", [40, 200])
@pytest.mark.parametrize("sent", STRANGE)
def test_who_drips_holds_up_nobody(house: House, sent: bytes, count: int) -> None:
    """However many send a byte now and then, another's request is answered at once."""
    clients = [house.connect(sent) for _ in range(count)]
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.1):
            for client in clients:
                with suppress(OSError):
                    client.send(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        took = [house.ask() for _ in range(5)]
    finally:
        ended.set()
        dripping.join()

    assert max(took) < SOON


@pytest.mark.parametrize("count", [40, 200])
def test_half_handshakes_hold_up_nobody(secure: House, count: int) -> None:
    """Clients that stop in the middle of their hello take no thread, and no accepting either."""
    for _ in range(count):
        secure.connect(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")

    assert max(secure.ask() for _ in range(5)) < SOON


def test_a_known_sender_that_drips_holds_up_only_itself(house: House) -> None:
    """Of one sender's requests only so many are read at once, and the others get their turn."""
    slow = [house.connect(post("/in/evil", "Content-Length: 9")) for _ in range(protocol.AT_ONCE)]
    eventually(
        "all turns of a sender are taken", lambda: house.busy == {"/in/evil": protocol.AT_ONCE}
    )
    waiting = house.connect(post("/in/evil", "Content-Length: 2", body=b"{}"))

    assert house.ask() < SOON
    waiting.settimeout(0.5)
    with pytest.raises(TimeoutError):
        waiting.recv(1000)
    slow[0].close()
    waiting.settimeout(30)
    assert waiting.recv(1000).startswith(b"HTTP/1.1 200")


def test_many_requests_of_one_sender_leave_threads_for_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that takes long takes its sender's turns, not everybody's threads."""
    monkeypatch.setattr(protocol, "AT_ONCE", THREADS - 1)
    house.front.open.clear()
    slow = [
        house.connect(post("/in/slow", "Content-Length: 2", body=b"{}")) for _ in range(3 * THREADS)
    ]

    assert house.ask() < SOON
    house.front.open.set()
    assert all(client.recv(1000).startswith(b"HTTP/1.1 200") for client in slow)


def test_who_is_refused_by_its_body_has_proved_nothing(house: House) -> None:
    """Its connection goes before a known sender's, and is not kept for long."""
    for path, status, proven in (("/in/forged", b"401", 0), ("/in/friend", b"200", 1)):
        client = house.connect(post(path, "Content-Length: 2", body=b"{}"))

        assert client.recv(1000).startswith(b"HTTP/1.1 " + status)
        eventually("no turn is taken", lambda: not house.busy)
        assert len(house.inside._proven) == proven


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        pytest.param(["Content-Length: -1"], b"", 400, id="a negative length"),
        pytest.param(["Content-Length: +5"], b"hello", 400, id="a length with a sign"),
        pytest.param(["Content-Length: 0x5"], b"hello", 400, id="a length in another base"),
        pytest.param(["Content-Length: 5 "], b"hello", 200, id="a blank after the length"),
        pytest.param(["Content-Length: five"], b"", 400, id="a length in words"),
        pytest.param(["Content-Length: \u0665"], b"", 400, id="a digit that is none"),
        pytest.param(["Content-Length: " + "9" * 5000], b"", 400, id="a length without end"),
        pytest.param(["Content-Length: " + "9" * 18], b"", 413, id="an absurd length"),
        pytest.param(["Content-Length: 5", "Content-Length: 6"], b"", 400, id="two lengths"),
        pytest.param([], b"", 411, id="no length"),
        pytest.param(
            ["Content-Length: 5", "Transfer-Encoding: chunked"],
            b"0\r\n\r\n",
            400,
            id="two ways to end",
        ),
        pytest.param(["Transfer-Encoding: gzip, chunked"], b"", 501, id="another encoding"),
        pytest.param(["Transfer-Encoding: identity"], b"", 501, id="no encoding"),
        pytest.param(
            ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], b"", 501, id="twice"
        ),
        pytest.param(["Transfer-Encoding: chunked"], b"zz\r\n", 400, id="no size of a chunk"),
        pytest.param(["Transfer-Encoding: chunked"], b"-5\r\n", 400, id="a negative chunk"),
        pytest.param(["Transfer-Encoding: chunked"], b"5\r\nhelloXX", 400, id="no end of a chunk"),
        pytest.param(
            ["Transfer-Encoding: chunked"], b"1\r\nx\r\n" * 6000, 400, id="too many chunks"
        ),
        pytest.param(["Transfer-Encoding: chunked"], b"5\r\nhello\r\n0\r\n\r\n", 200, id="fine"),
        pytest.param(["Authorization: a", "Authorization: b"], b"", 400, id="two tokens"),
    ],
)
def test_reads_a_length_in_only_one_way(
    house: House, headers: list[str], body: bytes, status: int
) -> None:
    """What two servers could understand in two ways is refused, and ends the connection."""
    sent = "\r\n".join(["POST /in/friend HTTP/1.1", "Host: x", *headers, "", ""])
    client = house.connect(sent.encode("utf-8") + body)
    if status == 200:
        client.shutdown(socket.SHUT_WR)

    assert everything(client).startswith(b"HTTP/1.1 %d" % status)
    assert house.front.served == ([5] if status == 200 else [])


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x00\x01\x02\r\n\r\n", id="no HTTP"),
        pytest.param(b"GET http://elsewhere/ HTTP/1.1\r\nHost: x\r\n\r\n", id="another's address"),
        pytest.param(b"GET /in%2Ffriend HTTP/1.1\r\nHost: x\r\n\r\n", id="a hidden slash"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", id="another HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n", id="half a header"),
    ],
)
def test_refuses_what_is_no_request_to_us(house: House, sent: bytes) -> None:
    """Nothing of it reaches the app."""
    assert house.answer_to(sent)[9:12] in {b"400", b"505"}
    assert house.front.asked == 0


@pytest.mark.parametrize(
    ("header", "piece", "status"),
    [
        pytest.param("Content-Length: 300000000", b"x" * 65_536, 404, id="as long as announced"),
        pytest.param("Content-Length: -1", b"x" * 65_536, 400, id="of a negative length"),
        pytest.param(
            "Transfer-Encoding: chunked",
            b"10000\r\n" + b"x" * 65_536 + b"\r\n",
            404,
            id="in chunks",
        ),
    ],
)
def test_reads_nothing_of_a_refused_body(
    house: House, header: str, piece: bytes, status: int
) -> None:
    """A client that goes on sending is cut off, after a little that saves the answer."""
    client = house.connect(post("/nobody", header))
    answer = client.recv(1000)
    sent = 0
    with suppress(OSError):
        while sent < 300_000_000:
            sent += client.send(piece)

    assert answer.startswith(b"HTTP/1.1 %d" % status)
    assert sent < 4 * rules.LINGER_BYTES
    assert house.front.served == []


def test_a_refused_sender_gets_its_answer_after_all_it_sent(secure: House) -> None:
    """Who sends a megabyte without a right to still reads why not."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", secure.server.port, context=secure.trust, timeout=30
    )
    connection.request("POST", "/nobody", b"x" * LIMIT)

    assert connection.getresponse().status == 404
    connection.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"POST /nobody HTTP/1.1\r\nHost: x\r\nX-Drip: ", id="a head"),
        pytest.param(post("/in/friend", "Content-Length: 900000"), id="a body"),
        pytest.param(chunked("/in/friend"), id="chunks"),
    ],
)
def test_every_request_has_an_end(
    house: House, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """A client that sends a byte now and then gets 408 when its time is over."""
    monkeypatch.setattr(rules, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(wsgi, "BODY_SECONDS", 1.0)
    client = house.connect(sent)
    client.settimeout(0.1)

    def answered() -> bytes:
        client.sendall(b"1")
        with suppress(TimeoutError):
            return client.recv(1000)
        return b""

    answer = eventually("it is answered", answered, patience=60, pause=0)
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_half_handshake_has_an_end(secure: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed when its time is over."""
    monkeypatch.setattr(rules, "HEAD_SECONDS", 0.5)

    assert secure.answer_to(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") == b""


def test_who_does_not_read_its_answers_is_cut_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests without end, one after the other, whose answers nobody takes, come to an end."""
    monkeypatch.setattr(wsgi, "ANSWER_SECONDS", 1.0)
    client = house.connect()
    client.settimeout(2.0)
    one = post("/in/friend", "Content-Length: 2", body=b"{}") * 1000
    sent = 0
    with suppress(OSError):
        while sent < 200_000_000:
            sent += client.send(one)

    assert sent < 200_000_000
    assert house.ask() < SOON


def test_frees_connections_of_unauthenticated_clients(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where too many of one address wait, the oldest of them go; known senders stay."""
    monkeypatch.setattr(protocol, "UNPROVEN", 10)
    known = http.client.HTTPConnection("127.0.0.1", house.server.port, timeout=30)
    known.request("POST", "/in/friend", b"{}")
    known.getresponse().read()
    kept = known.sock
    clients = [house.connect() for _ in range(30)]

    assert house.ask() < SOON
    assert [everything(client) for client in clients[:20]] == [b""] * 20
    known.request("POST", "/in/friend", b"{}")
    assert known.getresponse().read() == b"ok"
    assert known.sock is kept
    known.close()


def test_waits_for_a_body_only_if_it_is_read(house: House) -> None:
    """`Expect: 100-continue` is answered after the head was let in, or with the refusal."""
    admitted = house.connect(post("/in/friend", "Content-Length: 2", "Expect: 100-continue"))
    assert admitted.recv(1000).startswith(b"HTTP/1.1 100")
    admitted.sendall(b"{}")
    assert admitted.recv(1000).startswith(b"HTTP/1.1 200")

    unwanted = post("/nobody", "Content-Length: 2", "Expect: 100-continue")
    assert house.answer_to(unwanted).startswith(b"HTTP/1.1 404")


def test_answers_requests_that_come_together(house: House) -> None:
    """Several requests in one packet are answered one after the other."""
    one = post("/in/friend", "Content-Length: 2", body=b"{}")
    client = house.connect(one * 3)
    client.shutdown(socket.SHUT_WR)

    assert everything(client).count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        pytest.param("/in/friend", b"zz\r\n", id="no chunk"),
        pytest.param("/in/friend", b"0\r\n\r\nnonsense\r\n\r\n", id="no second request"),
        pytest.param("/in/friend", b"5\r\nhello\r\n", id="a late body"),
        pytest.param("/nobody", b"5\r\nhello\r\n", id="no right to send"),
    ],
)
def test_a_refused_client_that_stays_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch, path: str, rest: bytes
) -> None:
    """Its answer ends the connection, whether the client closes its side or not."""
    monkeypatch.setattr(wsgi, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(rules, "LINGER_SECONDS", 0.5)
    client = house.connect(chunked(path, rest))
    client.recv(1000)

    eventually("no connection is left", lambda: not house.inside.all())


def test_says_misbehaviour_seldom(house: House) -> None:
    """Hundreds of bad requests are one line, so that nobody can fill our disk."""
    for _ in range(100):
        house.answer_to(b"\x00\r\n\r\n")

    assert len(house.written.getvalue().splitlines()) == 1


@pytest.mark.clocked
def test_stops_while_unauthenticated_clients_are_connected(house: House) -> None:
    """A client that waits in the middle of something does not keep the server from its end."""
    for sent in (b"", b"POST /", post("/nobody", "Content-Length: 9")):
        house.connect(sent)
    begun = time.monotonic()
    house.server.stop()

    assert time.monotonic() - begun < SOON


def test_counts_nothing_that_has_ended(house: House) -> None:
    """After all clients have disconnected, no connection and no turn is left over."""
    kinds: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: post("/in/evil", "Content-Length: 9", body=b"abc"),
        lambda: chunked("/in/evil", b"5\r\nab"),
        lambda: post("/nobody", "Content-Length: 9"),
        lambda: post("/in/evil", "Content-Length: 2", body=b"{}"),
    ]
    for number in range(100):
        house.connect(kinds[number % len(kinds)]())
    house.sockets.close()

    eventually("no connection and no turn is left", lambda: not (house.inside.all() or house.busy))
    assert house.waiting == {}


def test_who_breaks_off_or_is_let_go_leaves_no_turn_taken(house: House) -> None:
    """Connections reset in a body give their turn back; those dropped in the line lose theirs."""
    unread = post("/in/evil", "Content-Length: 9", body=b"abc")
    reading = [house.connect(unread) for _ in range(protocol.AT_ONCE)]
    eventually(
        "all turns of a sender are taken", lambda: house.busy == {"/in/evil": protocol.AT_ONCE}
    )
    for _ in range(3):
        house.connect(post("/in/evil", "Content-Length: 2", body=b"{}"))
    eventually("three wait for a turn", lambda: len(house.waiting.get("/in/evil", ())) == 3)
    for client in reading[1:]:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    waiting = list(house.inside.all())[protocol.AT_ONCE :]
    waiting[0].loop.call_soon_threadsafe(lambda: [each.drop() for each in waiting])
    eventually("nobody waits", lambda: not house.waiting)
    for client in reading[1:]:
        client.close()
    eventually("one turn is taken", lambda: house.busy == {"/in/evil": 1})

    assert house.front.served == []
    assert house.ask("/in/evil") < SOON


@pytest.mark.parametrize("target", ["*", "/%2f", "/nothing", "/in/friend"])
@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"", id="as it should be"),
        pytest.param(b"Content-Length: 2\r\n", id="with the length of a body"),
        pytest.param(b"X: " + b"y" * (protocol.HEAD_BYTES + 1000) + b"\r\n", id="too long"),
    ],
)
def test_a_head_is_answered_without_a_body(house: House, target: str, rest: bytes) -> None:
    """However it is refused, and without a stack trace in the log.

    Of a head that is too long nobody may have read the method.
    """
    client = house.connect(f"HEAD {target} HTTP/1.1\r\nHost: x\r\n".encode() + rest + b"\r\n")
    if b"Content-Length" in rest:
        client.sendall(b"{}")
    client.shutdown(socket.SHUT_WR)
    answer = client.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 "), answer
    assert answer.endswith(b"\r\n\r\n") or b" 431 " in answer, answer
    assert "ERROR" not in house.written.getvalue()


def test_clients_that_leave_when_they_are_refused_are_no_errors(house: House) -> None:
    """A client may reset its connection before the refusal is written in full."""
    for _ in range(300):
        with house.connect(b"HEAD /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n") as client:
            client.recv(9)
    eventually("no connection is left", lambda: not house.inside.all())
    assert '"ERROR"' not in house.written.getvalue()
