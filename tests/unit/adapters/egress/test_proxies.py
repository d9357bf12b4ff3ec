"""HTTP proxies on the way to a server: how they are asked, and those that fail or mean harm."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from bellhop.adapters.egress.answer import Deadline, LimitError
from bellhop.adapters.egress.dialer import Dialer
from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from bellhop.errors import UnreachableError

OK = b"HTTP/1.1 200 OK\r\n\r\n"


@contextmanager
def proxy(*pieces: bytes, login: str = "") -> Iterator[tuple[str, list[bytes]]]:
    """Answer one connection with pieces, and keep it; yield the URL, and what was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                asked.append(connection.recv(65536))
                for piece in pieces:
                    connection.sendall(piece)
                connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://{login}127.0.0.1:{server.getsockname()[1]}", asked
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def dial(
    url: str, host: str = "api.example", reach: AddressPolicy = LOCAL, whole: float = 30
) -> None:
    dialer = Dialer(reach, proxy=url)
    dialer.dial(host, 6443, Deadline(whole), seconds=10).close()


@pytest.mark.parametrize(
    ("host", "target"), [("api.example", b"api.example:6443"), ("fd00::1", b"[fd00::1]:6443")]
)
def test_a_proxy_is_asked_to_connect(host: str, target: bytes) -> None:
    """Names are its to look up; the answer may come in pieces."""
    with proxy(OK[:9], OK[9:]) as (url, asked):
        dial(url, host)
    assert asked == [b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target)]


def test_a_login_goes_to_the_proxy() -> None:
    with proxy(OK, login="ada:a%40b@") as (url, asked):
        dial(url)
        assert "a%40b" not in repr(Dialer(LOCAL, proxy=url))
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"ada:a@b") in asked[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno", "does not accept the login"),
        (b"HTTP/1.1 403 No\r\n\r\n", "answers 403"),
        (b"HTTP/1.1 302 No\r\nLocation: http://a\r\n\r\n", "answers 302"),
        (OK + b"more", "does not answer as one"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not answer as one"),
        (b"a" * (1 << 17), "does not answer as one"),
    ],
)
def test_a_proxy_that_does_not_connect_is_named(answer: bytes, words: str) -> None:
    """Without its login, and without a word of its own."""
    with (
        proxy(answer, login="ada:hunter2@") as (url, _),
        pytest.raises(LimitError) as caught,
    ):
        dial(url)
    assert caught.value.words.startswith(f"its proxy {url.rpartition('@')[2]} {words}")
    assert caught.value.error is UnreachableError


def test_a_proxy_that_says_nothing_costs_its_time() -> None:
    with proxy() as (url, _), pytest.raises((LimitError, TimeoutError)):
        dial(url, whole=0.3)


def test_a_proxy_on_this_machine_is_for_one_machine() -> None:
    with pytest.raises(LimitError, match="is the machine that calls itself"):
        dial("http://127.0.0.1:1", reach=PUBLIC)
