"""The check that something listens at the address that clusters send their events to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.adapters.local.server import make_context
from bellhop.cli.session import is_listening
from bellhop.installation import Inbound

NOW = datetime.now(UTC)
LIFE = timedelta(hours=1)
AUTHORITY = make_authority("Bellhop", now=NOW, validity=LIFE)
CA = AUTHORITY.certificate_pem.decode()

Play = Callable[[ssl.SSLSocket, threading.Event], None]


def well(there: ssl.SSLSocket, _: threading.Event) -> None:
    there.recv(4096)
    there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def unwell(there: ssl.SSLSocket, _: threading.Event) -> None:
    there.recv(4096)
    there.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")


def drip(there: ssl.SSLSocket, over: threading.Event) -> None:
    """Send a head that has no end, a byte at a time."""
    there.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    with suppress(OSError):
        while not over.wait(0.05):
            there.sendall(b"x")


@contextmanager
def listening(play: Play) -> Iterator[str]:
    certificate, key = issue(AUTHORITY, ["127.0.0.1"], now=NOW, validity=LIFE)
    context, over = make_context(certificate, key), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                taken, _ = listener.accept()
                with context.wrap_socket(taken, server_side=True) as there:
                    play(there, over)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("play", [well, unwell])
def test_who_answers_listens_whatever_the_answer(play: Play) -> None:
    with listening(play) as url:
        assert is_listening(Inbound(url, CA))


def test_an_answer_that_never_ends_is_none() -> None:
    """The server sends until the test is over: only a deadline for the whole ends the question."""
    with listening(drip) as url:
        assert not is_listening(Inbound(url, CA))


def test_another_authority_is_no_answer() -> None:
    other = make_authority("another", now=NOW, validity=LIFE).certificate_pem.decode()

    with listening(well) as url:
        assert not is_listening(Inbound(url, other))


@pytest.mark.parametrize(
    ("url", "ca"),
    [
        ("", ""),
        ("http://127.0.0.1:1", ""),
        ("https://127.0.0.1:1", ""),
        ("https://127.0.0.1:port", ""),
        ("https://127.0.0.1:1", "no certificate"),
        ("https://169.254.169.254", ""),
    ],
)
def test_what_cannot_be_asked_does_not_answer(url: str, ca: str) -> None:
    assert not is_listening(Inbound(url, ca))
