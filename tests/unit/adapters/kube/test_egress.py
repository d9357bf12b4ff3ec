"""An API server that means harm, or has lost its mind, costs a bounded time and no memory."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from bellhop.adapters.egress import client as egress
from bellhop.adapters.egress import dialer
from bellhop.adapters.egress.dialer import Lookups
from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call, Refusal
from bellhop.adapters.kube.transport import Request, Transport
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from bellhop.errors import BellhopError, InvalidError, TooLargeError, UnreachableError
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi

CALL = Call("prod/eu-1", "read ConfigMap 'web/a'")
GET = Request("GET", "/x")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MIB = 1 << 20


@contextmanager
def serving(play: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answer each connection with `play`, as bytes; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                play(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def sending(pieces: Iterable[bytes], pause: float = 0.0) -> Callable[[socket.socket], None]:
    """Read a request and send the pieces."""

    def play(connection: socket.socket) -> None:
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)
            if pause:
                time.sleep(pause)

    return play


def ask(url: str) -> Any:
    """Ask once."""
    return Transport("prod/eu-1", Kubeconfig(url, token="t"), reach=LOCAL).ask(GET, CALL)


def bomb(megabytes: int) -> bytes:
    """Pack so many MiB into a thousandth of it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = [packer.compress(b'{"kind":"Namespace","x":"')]
    packed += [packer.compress(b"a" * MIB) for _ in range(megabytes)]
    return b"".join((*packed, packer.compress(b'"}'), packer.flush()))


def packed(content: bytes, status: bytes = b"200 OK", encoding: bytes = b"gzip") -> bytes:
    """Make an answer of packed content."""
    head = b"HTTP/1.1 %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    return head % (status, encoding, len(content)) + content


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an answer half a second as a whole."""
    monkeypatch.setattr(egress, "WHOLE_SECONDS", 0.5)


def test_a_gzip_bomb_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 MiB in 256 KB are unpacked no further than to the limit."""
    monkeypatch.setattr(egress, "LARGEST", 4 * MIB)
    tracemalloc.start()
    try:
        with serving(sending([packed(bomb(256))])) as url, pytest.raises(TooLargeError) as caught:
            ask(url)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert str(caught.value) == (
        "cannot read ConfigMap 'web/a' on cluster 'prod/eu-1': the answer has more than"
        " 4194304 bytes"
    )
    assert caught.value.context["plain"] == str(caught.value)
    assert most < 32 * MIB


def test_a_bomb_in_a_refusal_leaves_its_code() -> None:
    """What is too long to be a Status says no more than its code."""
    with serving(sending([packed(bomb(64), status=b"409 Conflict")])) as url:
        refusal = ask(url)

    assert refusal == Refusal(409)


@pytest.mark.parametrize("encoding", [b"gzip, gzip", b"deflate", b"br", b"zstd", b"x"])
def test_unpacks_only_what_was_asked_for(encoding: bytes) -> None:
    """Packing on top of packing multiplies what one byte becomes."""
    content = gzip.compress(gzip.compress(b"{}"))

    with (
        serving(sending([packed(content, encoding=encoding)])) as url,
        pytest.raises(UnreachableError, match="packed in a way that was not asked for"),
    ):
        ask(url)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(gzip.compress(b"[]" * 999)[:-9], "the connection broke off", id="cut"),
        pytest.param(b"no gzip", "the answer cannot be unpacked", id="no gzip"),
        pytest.param(b"", "the connection broke off", id="empty"),
    ],
)
def test_half_a_packed_answer_is_no_answer(content: bytes, words: str) -> None:
    """The end of the packing must come, not only the end of the bytes."""
    with serving(sending([packed(content)])) as url, pytest.raises(UnreachableError, match=words):
        ask(url)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("start", "drip"),
    [
        pytest.param(b"", b"H", id="status line"),
        pytest.param(OK, b"X-A: b\r\n", id="headers"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="provisional answers"),
        pytest.param(OK + b"Content-Length: 100000\r\n\r\n", b" ", id="body"),
        pytest.param(OK + b"\r\n", b" ", id="body without a length"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", id="chunks"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0", id="head of a chunk"),
        pytest.param(OK + b"Content-Encoding: gzip\r\n\r\n", b"\x1f", id="packed"),
        pytest.param(
            b"HTTP/1.1 500 X\r\nContent-Length: 99999\r\n\r\n", b" ", id="body of a refusal"
        ),
    ],
)
def test_an_answer_that_drips_ends_in_time(start: bytes, drip: bytes) -> None:
    """A byte now and then keeps no thread: the answer as a whole has its time."""
    pieces = [*([start] if start else []), *itertools.repeat(drip, 600)]
    begun = time.monotonic()

    with serving(sending(pieces, pause=0.05)) as url:
        if b"500" in start:
            assert ask(url) == Refusal(500)
        else:
            with pytest.raises(UnreachableError, match=r"'prod/eu-1': it took longer than 0\.5 s"):
                ask(url)

    # The whole drip would take 30 s.
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(b"HTTP/1.1 ", b"2" * 65536, id="status line"),
        pytest.param(OK, b"X-A: " + b"b" * 9000 + b"\r\n", id="headers"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99, id="provisional answers"),
        pytest.param(OK + b"\r\n", b" " * 65536, id="body"),
        pytest.param(OK + b"Content-Length: %d\r\n\r\n" % 10**15, b" " * 65536, id="a length"),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 9999, id="small chunks"
        ),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536, id="chunk's head"),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 65536, id="chunk's name"
        ),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: b\r\n" * 9999, id="trailers"
        ),
    ],
)
def test_an_answer_without_end_ends(
    start: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is made endless, it is cut off after so many bytes.

    It takes seconds: an answer in small chunks is read chunk by chunk until then.
    """
    monkeypatch.setattr(egress, "LARGEST", MIB)
    sent = itertools.chain([start] if start else [], itertools.repeat(more, 4000))
    tracemalloc.start()
    try:
        with serving(sending(sent)) as url, pytest.raises(BellhopError) as caught:
            ask(url)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert isinstance(caught.value, (UnreachableError, TooLargeError))
    assert "prod/eu-1" in str(caught.value)
    assert most < 32 * MIB


@pytest.mark.usefixtures("hurried")
def test_a_server_that_reads_slowly_ends_in_time() -> None:
    """A large apply does not hang on a peer that takes a few bytes now and then."""

    def play(connection: socket.socket) -> None:
        for _ in range(600):
            connection.recv(64)
            time.sleep(0.05)

    begun = time.monotonic()
    request = Request("POST", "/x", body={"text": "x" * (64 * MIB)})
    with serving(play) as url, pytest.raises(UnreachableError):
        Transport("prod/eu-1", Kubeconfig(url, token="t"), reach=LOCAL).ask(request, CALL)

    assert time.monotonic() - begun < 15


def test_a_connection_is_kept_after_a_packed_answer(api: ScriptedApi) -> None:
    """What was read whole leaves nothing behind."""
    body = gzip.compress(b'{"a": 1}')
    api.script = [Answer(body=body, headers={"Content-Encoding": "gzip"})] * 3
    sender = Transport("a/b", api.kubeconfig, reach=LOCAL)

    assert [sender.send(GET, CALL) for _ in range(3)] == [{"a": 1}] * 3
    assert api.open == 1


def test_a_path_of_the_server_stays_in_front(api: ScriptedApi) -> None:
    """Some API servers are reached through a gateway that has them below a path."""
    api.script = [Answer()]

    Transport("a/b", Kubeconfig(f"{api.url}/k8s/clusters/c-1", token="t"), reach=LOCAL).send(
        Request("GET", "/api/v1/pods", {"limit": "1"}), CALL
    )

    assert api.seen[0].path == "/k8s/clusters/c-1/api/v1/pods?limit=1"


# Where ------------------------------------------------------------------------------------------


class Names:
    """A resolver that a test answers for."""

    def __init__(self) -> None:
        self.answers: list[list[str]] = []
        self.asked: list[str] = []

    def find(self, host: str) -> list[str]:
        """Answer in the order of the answers."""
        self.asked.append(host)
        return self.answers.pop(0)


@pytest.fixture
def names() -> Names:
    """Answer for names."""
    return Names()


def named(url: str, resolve: Callable[[str], list[str]]) -> Transport:
    """Call an address whose name is looked up by a test."""
    return Transport("a/b", Kubeconfig(url, token="t"), reach=LOCAL, lookups=Lookups(resolve))


@pytest.mark.parametrize(
    ("url", "reach"),
    [
        pytest.param("http://127.0.0.1:1", PUBLIC, id="loopback abroad"),
        pytest.param("http://[::1]:1", PUBLIC, id="loopback of IPv6"),
        pytest.param("http://0177.0.0.1:1", PUBLIC, id="octal"),
        pytest.param("http://0x7f.1:1", PUBLIC, id="hexadecimal"),
        pytest.param("http://2130706433:1", PUBLIC, id="one number"),
        pytest.param("http://[::ffff:127.0.0.1]:1", PUBLIC, id="mapped"),
        pytest.param("http://localhost:1", PUBLIC, id="name"),
        pytest.param("http://127.0.0.1.:1", PUBLIC, id="trailing dot"),
        pytest.param("http://169.254.169.254", LOCAL, id="link-local"),
        pytest.param("http://2852039166", LOCAL, id="link-local as one number"),
        pytest.param("http://[fe80::1]", LOCAL, id="link-local of IPv6"),
        pytest.param("http://[fd00:ec2::254]", LOCAL, id="metadata of IPv6"),
        pytest.param("http://100.100.100.200", LOCAL, id="metadata elsewhere"),
        pytest.param("http://0.0.0.0:1", LOCAL, id="unspecified"),
        pytest.param("http://[::]:1", LOCAL, id="unspecified of IPv6"),
    ],
)
def test_forbidden_addresses_are_not_called(url: str, reach: AddressPolicy) -> None:
    """No packet goes there, in whatever spelling, though no check was made before."""
    sender = Transport("prod/eu-1", Kubeconfig(url, token="t"), reach=reach)

    with pytest.raises(BellhopError) as caught:
        sender.ask(GET, CALL)

    assert isinstance(caught.value, (InvalidError, UnreachableError))
    assert "nothing is called there" in str(caught.value) or "not known" in str(caught.value)
    assert "prod/eu-1" in str(caught.value)


def test_who_says_nothing_calls_nothing_here(api: ScriptedApi) -> None:
    """The reach of a client is that of a cloud's function, unless it is given another."""
    for ask in (
        lambda: Transport("a/b", api.kubeconfig).ask(GET, CALL),
        lambda: KubeClient("a/b", api.kubeconfig).version(),
    ):
        with pytest.raises(InvalidError, match="is the machine that calls itself"):
            ask()

    assert api.seen == []


def test_a_name_that_leads_to_a_forbidden_address_is_not_called(names: Names) -> None:
    """It may lead to another address tomorrow, so that it is tried again."""
    names.answers = [["169.254.169.254"]]

    with pytest.raises(
        UnreachableError,
        match=r"its address 169\.254\.169\.254 is link-local.*nothing is called there",
    ):
        named("https://eu.example", names.find).ask(GET, CALL)


def test_of_several_addresses_only_those_allowed_are_called(names: Names, api: ScriptedApi) -> None:
    """One bad address among good ones is passed over."""
    api.script = [Answer(body={"ok": 1})]
    names.answers = [["169.254.169.254", "127.0.0.1"]]
    url = api.url.replace("127.0.0.1", "eu.example")

    assert named(url, names.find).ask(GET, CALL) == {"ok": 1}


def test_what_is_called_is_what_was_checked(names: Names, api: ScriptedApi) -> None:
    """A name that changes between check and call has only one look-up to change in."""
    api.script = [Answer(body={"ok": 1})]
    names.answers = [["127.0.0.1"], ["169.254.169.254"]]
    url = api.url.replace("127.0.0.1", "eu.example")

    assert named(url, names.find).ask(GET, CALL) == {"ok": 1}
    assert names.asked == ["eu.example"]


def test_a_server_of_many_dead_addresses_ends_in_time(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with a hundred addresses has no more time than one."""
    monkeypatch.setattr(egress, "WHOLE_SECONDS", 0.0)
    names.answers = [[f"127.1.1.{each}" for each in range(1, 101)]]

    with pytest.raises(UnreachableError, match="it took longer"):
        named("https://eu.example:1", names.find).ask(GET, CALL)


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """A resolver's never, until the test has ended."""
    never = threading.Event()
    yield never
    never.set()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_name_that_is_never_found_costs_its_time(
    scheme: str, hanging: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DNS server that keeps its clients waiting keeps no request."""
    monkeypatch.setattr(dialer, "LOOKUP_SECONDS", 0.2)
    begun = time.monotonic()

    with pytest.raises(UnreachableError, match=r"looking its host name up took longer"):
        named(f"{scheme}://eu.example", lambda _: [str(hanging.wait(30))]).ask(GET, CALL)

    assert time.monotonic() - begun < 10


@pytest.mark.clocked
def test_looking_up_is_a_part_of_the_time_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow name and a slow answer have one time together."""
    monkeypatch.setattr(egress, "WHOLE_SECONDS", 2.0)

    def find(_: str) -> list[str]:
        time.sleep(1.0)
        return ["127.0.0.1"]

    drip = [OK + b"Content-Length: 4\r\n\r\n", b"{", b'"', b'"', b":"]
    with (
        serving(sending(drip, pause=0.4)) as url,
        pytest.raises(UnreachableError, match="it took longer than 2 s"),
    ):
        named(url.replace("127.0.0.1", "eu.example"), find).ask(GET, CALL)


@pytest.mark.clocked
@pytest.mark.usefixtures("hurried")
def test_every_request_of_a_connection_has_its_own_time(api: ScriptedApi) -> None:
    """What is kept open for the next request does not keep the time of the last."""
    api.script = [Answer(body={"ok": 1})] * 3
    sender = named(api.url.replace("127.0.0.1", "eu.example"), lambda _: ["127.0.0.1"])

    for _ in range(3):
        assert sender.ask(GET, CALL) == {"ok": 1}
        time.sleep(0.3)
    assert api.open == 1


def test_a_host_that_is_no_name_is_invalid() -> None:
    """A label longer than DNS has them is not looked up."""
    sender = Transport("a/b", Kubeconfig(f"https://{'a' * 64}.invalid", token="t"), reach=LOCAL)

    with pytest.raises(InvalidError, match="its address is not one that can be called"):
        sender.ask(GET, CALL)
