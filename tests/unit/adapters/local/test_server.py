"""The server: TLS, keep-alive, many clients, bad clients, and a graceful end."""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellhop.adapters.local import protocol
from bellhop.adapters.local import protocol as rules
from bellhop.adapters.local.certificates import Authority, issue, make_authority
from bellhop.adapters.local.http_app import App
from bellhop.adapters.local.server import Server
from bellhop.errors import ConflictError, InvalidError
from bellhop.logs import Log

HOUR = timedelta(hours=1)

Serve = Callable[..., Server]


def echo(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    body = environ["wsgi.input"].read()
    answer = json.dumps(
        {
            "method": environ["REQUEST_METHOD"],
            "path": environ["PATH_INFO"],
            "scheme": environ["wsgi.url_scheme"],
            "length": len(body),
        }
    ).encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority("Bellhop tests", now=datetime.now(UTC), validity=HOUR)


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> tuple[bytes, bytes]:
    return issue(authority, ["localhost", "127.0.0.1"], now=datetime.now(UTC), validity=HOUR)


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.certificate_pem.decode())


@pytest.fixture
def logged() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def serve(certificate: tuple[bytes, bytes], logged: io.StringIO) -> Iterator[Serve]:
    """Start a server on loopback; with TLS unless `plain`."""
    started: list[Server] = []

    def start(app: App = echo, *, plain: bool = False, threads: int = 4) -> Server:
        pems = (None, None) if plain else certificate
        server = Server(
            app,
            host="127.0.0.1",
            port=0,
            certificate_pem=pems[0],
            key_pem=pems[1],
            threads=threads,
            log=Log(logged),
        )
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def _ended(client: socket.socket) -> bool:
    try:
        return client.recv(1000) == b""
    except TimeoutError:
        return False


def ask(connection: http.client.HTTPConnection, path: str = "/", body: bytes = b"") -> Any:
    connection.request("POST", path, body)
    response = connection.getresponse()
    return json.loads(response.read())


@pytest.mark.parametrize("plain", [False, True], ids=["TLS", "plain"])
def test_answers_are_sent_at_once(serve: Serve, trust: ssl.SSLContext, *, plain: bool) -> None:
    """Nagle's algorithm would keep the first one back until its handshake is acknowledged."""
    server = serve(plain=plain)
    kind = http.client.HTTPConnection
    connection = (
        kind("localhost", server.port)
        if plain
        else http.client.HTTPSConnection("localhost", server.port, context=trust)
    )
    ask(connection)
    [guest] = server._shared.limiter.all()
    theirs = guest.transport.get_extra_info("socket")
    option = theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()

    assert option == 1


def test_serves_https_to_clients_that_verify(serve: Serve, trust: ssl.SSLContext) -> None:
    """A client that trusts the authority only gets its answer over HTTPS."""
    server = serve()
    connection = http.client.HTTPSConnection("localhost", server.port, context=trust)

    assert ask(connection, "/events", b"x" * 1_600_000) == {
        "method": "POST",
        "path": "/events",
        "scheme": "https",
        "length": 1_600_000,
    }
    assert server.url == f"https://127.0.0.1:{server.port}"
    connection.close()


def test_serves_plain_http_on_loopback(serve: Serve) -> None:
    """Without a certificate it is HTTP, for this machine only."""
    server = serve(plain=True)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)

    assert ask(connection)["scheme"] == "http"
    assert server.url == f"http://127.0.0.1:{server.port}"
    connection.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org", ""])
def test_refuses_plain_http_beyond_loopback(host: str) -> None:
    """Without a certificate it does not listen where others could reach it."""
    with pytest.raises(InvalidError, match=r"listens on 127\.0\.0\.1 only"):
        Server(echo, host=host, port=0)


@pytest.mark.parametrize(
    ("pem", "key"),
    [
        pytest.param(b"garbage", b"garbage", id="not PEM"),
        pytest.param(None, b"", id="no key"),
        pytest.param(None, None, id="another's key"),
    ],
)
def test_refuses_a_certificate_that_cannot_be_used(
    authority: Authority, certificate: tuple[bytes, bytes], pem: bytes | None, key: bytes | None
) -> None:
    """A certificate without its own key is refused when the server is set up."""
    with pytest.raises(InvalidError, match="cannot use the server's certificate"):
        Server(
            echo,
            host="127.0.0.1",
            port=0,
            certificate_pem=certificate[0] if pem is None else pem,
            key_pem=authority.key_pem if key is None else key,
        )


@pytest.mark.parametrize(
    ("version", "spoken"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_2, "TLSv1.2", id="1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_3, "TLSv1.3", id="1.3"),
    ],
)
def test_speaks_modern_tls(
    serve: Serve, trust: ssl.SSLContext, version: ssl.TLSVersion, spoken: str
) -> None:
    """TLS 1.2 and 1.3 are spoken, with forward secrecy."""
    trust.minimum_version = trust.maximum_version = version
    with (
        socket.create_connection(("127.0.0.1", serve().port)) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        cipher = secure.cipher()
        assert secure.version() == spoken
        assert cipher is not None
        assert cipher[0].startswith(("ECDHE", "TLS_"))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_does_not_speak_older_tls(serve: Serve, trust: ssl.SSLContext) -> None:
    """A client that offers TLS 1.1 at most gets no connection."""
    trust.set_ciphers("ALL:@SECLEVEL=0")
    trust.minimum_version = trust.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", serve().port)) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        trust.wrap_socket(plain, server_hostname="localhost")


def test_keeps_connections_alive(serve: Serve, trust: ssl.SSLContext) -> None:
    """Many requests go over one connection."""
    connection = http.client.HTTPSConnection("localhost", serve().port, context=trust)
    connection.connect()
    sock = connection.sock
    for number in range(50):
        assert ask(connection, f"/{number}")["path"] == f"/{number}"

    assert connection.sock is sock
    connection.close()


def test_a_hundred_clients_are_served_at_once(serve: Serve, trust: ssl.SSLContext) -> None:
    """More clients than threads keep their connections and all get their answers."""
    server = serve(threads=8)
    barrier = threading.Barrier(100)
    answers: list[str] = []

    def client(number: int) -> None:
        connection = http.client.HTTPSConnection("localhost", server.port, context=trust)
        connection.connect()
        barrier.wait(30)
        answers.extend(ask(connection, f"/{number}")["path"] for _ in range(5))
        connection.close()

    clients = [threading.Thread(target=client, args=(number,)) for number in range(100)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()

    assert sorted(answers) == sorted(f"/{number}" for number in range(100) for _ in range(5))


def test_silent_clients_hold_nobody_up(serve: Serve, trust: ssl.SSLContext) -> None:
    """Connections that send nothing, more than there are threads, take none."""
    server = serve(threads=2)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    connection = http.client.HTTPSConnection("localhost", server.port, context=trust, timeout=5)

    assert ask(connection, "/quick")["path"] == "/quick"
    connection.close()
    for each in silent:
        each.close()


def test_a_client_that_drips_its_head_is_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that does not arrive in its time ends the connection, however often a byte comes."""
    monkeypatch.setattr(rules, "HEAD_SECONDS", 1.0)
    server = serve(plain=True)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        client.settimeout(0.1)
        dripped = 0
        with suppress(ConnectionError):
            while dripped < 200 and not _ended(client):
                client.sendall(b"X")
                dripped += 1

    assert dripped < 100


def test_a_client_that_stops_in_its_head_gets_an_answer(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that does not come to its end is answered with 408 and the end of the connection."""
    monkeypatch.setattr(rules, "HEAD_SECONDS", 0.5)
    server = serve(plain=True)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        client.settimeout(10)
        answer = client.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 408")


def test_a_head_that_is_too_long_is_refused(serve: Serve) -> None:
    """Headers beyond the limit are answered with 413 or 431, and the app is not asked."""
    asked: list[str] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        return echo(environ, start_response)

    server = serve(app, plain=True)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/", headers={"X-Long": "x" * protocol.HEAD_BYTES})

    assert connection.getresponse().status in (413, 431)
    assert asked == []
    connection.close()


def test_plain_http_on_the_tls_port_is_harmless(
    serve: Serve, trust: ssl.SSLContext, logged: io.StringIO
) -> None:
    """A client without TLS is disconnected, with a line in the log, and others are served."""
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(10)
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionError):
            client.recv(1000)
    connection = http.client.HTTPSConnection("localhost", server.port, context=trust)

    assert ask(connection)["scheme"] == "https"
    assert {json.loads(line)["severity"] for line in logged.getvalue().splitlines()} <= {"WARNING"}
    connection.close()


def test_an_app_that_fails_answers_500_and_is_logged(serve: Serve, logged: io.StringIO) -> None:
    """An error that an app lets out is a 500 without its words, and a traceback in the log."""

    def app(_: dict[str, Any], __: Any) -> list[bytes]:
        message = "the app broke"
        raise RuntimeError(message)

    connection = http.client.HTTPConnection("127.0.0.1", serve(app, plain=True).port)
    connection.request("GET", "/")
    response = connection.getresponse()

    assert response.status == 500
    assert b"the app broke" not in response.read()
    [line] = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert line["severity"] == "ERROR"
    assert "RuntimeError: the app broke" in line["stack_trace"]
    connection.close()


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(("X-Split", "a\r\nX-Other: b"), id="two lines in one"),
        pytest.param(("X Blank", "a"), id="no name"),
    ],
)
def test_an_app_that_answers_nonsense_harms_nobody(
    serve: Serve, logged: io.StringIO, header: tuple[str, str]
) -> None:
    """A header that is none is never sent: the connection ends, and the log says why."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [header])
        return [environ["wsgi.input"].read()]

    connection = http.client.HTTPConnection("127.0.0.1", serve(app, plain=True).port, timeout=30)
    connection.request("GET", "/")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        connection.getresponse()

    assert "LocalProtocolError" in logged.getvalue()
    connection.close()


def test_another_certificate_is_used_without_a_restart(
    serve: Serve, authority: Authority, trust: ssl.SSLContext
) -> None:
    """After renewal new connections see the new certificate."""
    server = serve()

    def seen() -> Any:
        with (
            socket.create_connection(("127.0.0.1", server.port)) as plain,
            trust.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            return secure.getpeercert()["serialNumber"]  # type: ignore[index]

    before = seen()
    server.renew(*issue(authority, ["localhost"], now=datetime.now(UTC), validity=HOUR))

    assert seen() != before


def test_nobody_is_refused_while_a_certificate_is_renewed(
    serve: Serve, authority: Authority, trust: ssl.SSLContext
) -> None:
    """A handshake at that very moment sees the old one or the new one."""
    server = serve()
    done = threading.Event()
    failures: list[OSError] = []

    def knock() -> None:
        while not done.is_set():
            try:
                with (
                    socket.create_connection(("127.0.0.1", server.port)) as plain,
                    trust.wrap_socket(plain, server_hostname="localhost"),
                ):
                    pass
            except OSError as error:
                failures.append(error)

    threads = [threading.Thread(target=knock) for _ in range(2)]
    pairs = [
        issue(authority, ["localhost"], now=datetime.now(UTC), validity=HOUR) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for _ in range(20):
        for pair in pairs:
            server.renew(*pair)
    done.set()
    for thread in threads:
        thread.join()

    assert failures == []


def test_a_server_without_tls_has_nothing_to_renew(
    serve: Serve, certificate: tuple[bytes, bytes]
) -> None:
    """Renewing the certificate of a plain server is an error."""
    with pytest.raises(InvalidError, match="has no TLS"):
        serve(plain=True).renew(*certificate)


def test_finishes_what_is_under_way_when_it_stops(serve: Serve) -> None:
    """A request that was accepted is answered, though the server is asked to stop meanwhile."""
    entered = threading.Event()

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        entered.set()
        time.sleep(0.5)
        return echo(environ, start_response)

    server = serve(app, plain=True)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/late")
    entered.wait(10)
    server.stop()

    assert json.loads(connection.getresponse().read())["path"] == "/late"
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", server.port))
    connection.close()


def test_stops_twice_and_before_it_starts(certificate: tuple[bytes, bytes]) -> None:
    """Stopping a server that does not run is fine, and leaves no thread."""
    threads = threading.active_count()
    server = Server(
        echo, host="127.0.0.1", port=0, certificate_pem=certificate[0], key_pem=certificate[1]
    )
    server.stop()
    server.start()
    server.stop()
    server.stop()

    assert threading.active_count() == threads


def test_a_port_that_is_taken_is_said(serve: Serve) -> None:
    """Where another process listens, the sentence says so and what to do."""
    taken = serve(plain=True).port

    with pytest.raises(ConflictError, match=rf"'127\.0\.0\.1:{taken}'.*Choose another port"):
        Server(echo, host="127.0.0.1", port=taken).start()


def test_an_address_of_another_machine_is_said(certificate: tuple[bytes, bytes]) -> None:
    """An address that is not this machine's is invalid."""
    server = Server(
        echo, host="192.0.2.1", port=0, certificate_pem=certificate[0], key_pem=certificate[1]
    )

    with pytest.raises(InvalidError, match="no such address"):
        server.start()
