"""The proxy of other programs: it leads to one server, at checked addresses, and nowhere else."""

from __future__ import annotations

import http.client
import re
import socket
from contextlib import closing
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest

from bellhop.adapters.egress.dialer import Dialer, Lookups
from bellhop.adapters.egress.tunnel import Tunnel, _refusal
from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from infra.lab.port import free_port
from tests.fakes.site import Site

NAME = "eu.example"
REDIRECTS = "cannot reach the server: it redirects to another server; none is followed"


def dialer(*addresses: str, reach: AddressPolicy = LOCAL) -> Dialer:
    """Return one for which every name has these addresses."""
    return Dialer(reach, Lookups(lambda _: list(addresses)))


def port_of(url: str) -> int:
    return urlsplit(url).port or 0


def connecting(tunnel: Tunnel, host: str, port: int) -> http.client.HTTPConnection:
    """Return a connection by CONNECT, without TLS in it."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(tunnel.address), timeout=30)
    connection.set_tunnel(host, port)
    return connection


def plainly(tunnel: Tunnel, url: str) -> tuple[int, bytes]:
    """Return the answer of a proxy to a request without TLS."""
    proxy = http.client.HTTPConnection("127.0.0.1", port_of(tunnel.address), timeout=30)
    with closing(proxy) as connection:
        connection.request("GET", url)
        answer = connection.getresponse()
        return answer.status, answer.read()


def connect(tunnel: Tunnel, host: str, port: int) -> str:
    """Return why a proxy refuses to connect; empty if it does not."""
    with closing(connecting(tunnel, host, port)) as connection:
        try:
            connection.connect()
        except OSError as error:
            return str(error)
        return ""


def test_leads_to_a_server_under_its_own_name() -> None:
    """By the first of its addresses that takes the connection; several requests use one."""
    with Site({"/a": b"one", "/b": b"two"}) as site:
        port = port_of(site.address)
        with Tunnel(f"https://{NAME}:{port}", dialer("127.1.1.9", "127.0.0.1")) as tunnel:
            connection = connecting(tunnel, NAME.upper(), port)
            for path, expected in (("/a", b"one"), ("/b", b"two")):
                connection.request("GET", path)
                assert connection.getresponse().read() == expected
            connection.close()
    assert site.asked[0].headers["Host"].lower() == f"{NAME}:{port}"


@pytest.mark.parametrize("host", ["127.0.0.1", "us.example", "169.254.169.254"])
def test_leads_to_no_other_server(host: str) -> None:
    """Be it led there by a redirect, or ask for it by itself."""
    with Site({"/": b"secret"}) as other:
        port = port_of(other.address)
        with Tunnel(f"https://{NAME}:{port}", dialer("127.0.0.1")) as tunnel:
            assert f"502 {REDIRECTS}" in connect(tunnel, host, port)
            refused = (HTTPStatus.BAD_GATEWAY, REDIRECTS.encode())
            assert plainly(tunnel, f"http://{host}:{port}/") == refused
    assert other.asked == []


@pytest.mark.parametrize("line", ["CONNECT", "CONNECT [::1", "GET /", "GET http://[", "\xff", ""])
def test_what_is_no_request_to_a_proxy_is_refused(line: str) -> None:
    with Tunnel(f"https://{NAME}", dialer("127.0.0.1")) as tunnel:
        place = ("127.0.0.1", port_of(tunnel.address))
        with socket.create_connection(place, 30) as connection:
            connection.sendall(f"{line} HTTP/1.1\r\n\r\n".encode())
            assert connection.recv(12) == b"HTTP/1.1 502"


def test_a_server_with_tls_is_not_called_without_it() -> None:
    with Site({"/": b"secret"}) as site:
        port = port_of(site.address)
        with Tunnel(f"https://{NAME}:{port}", dialer("127.0.0.1")) as tunnel:
            status, _ = plainly(tunnel, f"http://{NAME}:{port}/")
    assert (status, site.asked) == (HTTPStatus.BAD_GATEWAY, [])


def test_a_server_without_tls_is_called_as_it_is() -> None:
    """On one machine an API server may be behind `kubectl proxy`."""
    with Site({"/a": b"content"}) as site, Tunnel(site.address, dialer()) as tunnel:
        site.files[f"{site.address}/a"] = b"content"
        assert plainly(tunnel, f"{site.address}/a") == (HTTPStatus.OK, b"content")
        assert plainly(tunnel, f"http://127.0.0.1:{free_port()}/a")[0] == HTTPStatus.BAD_GATEWAY


@pytest.mark.parametrize(
    ("host", "addresses", "reach", "words"),
    [
        (NAME, ["127.0.0.1"], PUBLIC, "is the machine that calls itself"),
        (NAME, ["169.254.169.254"], LOCAL, "metadata|link-local"),
        ("169.254.169.254", [], LOCAL, "link-local"),
        (NAME, ["127.0.0.1"], LOCAL, "refused or has no route"),
    ],
)
def test_what_may_not_be_called_or_does_not_answer_is_said(
    host: str, addresses: list[str], reach: AddressPolicy, words: str
) -> None:
    port = free_port()
    with Tunnel(f"https://{host}:{port}", dialer(*addresses, reach=reach)) as tunnel:
        assert re.search(f"502 cannot reach the server: .*({words})", connect(tunnel, host, port))


def test_nothing_leads_anywhere_afterwards() -> None:
    with Site({"/": b"content"}) as site:
        port = port_of(site.address)
        with Tunnel(f"https://{NAME}:{port}", dialer("127.0.0.1")) as tunnel:
            connection = connecting(tunnel, NAME, port)
            connection.connect()
            place = ("127.0.0.1", port_of(tunnel.address))
        assert connection.sock.recv(1) == b""
        connection.close()
        with pytest.raises(ConnectionError):
            socket.create_connection(place, 30).close()


def test_a_refusal_has_the_length_of_its_bytes() -> None:
    """A host name in its words may have letters of two bytes."""
    head, _, text = _refusal("the host 'münchen' is not known").partition(b"\r\n\r\n")

    assert f"Content-Length: {len(text)}".encode() in head
