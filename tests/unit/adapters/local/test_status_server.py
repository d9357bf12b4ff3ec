"""Probes and metrics: answered while it runs, and no reason to wake while nobody asks."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import pytest
import urllib3

from bellhop.adapters.local.status_server import MOST, StatusServer
from bellhop.errors import InvalidError
from tests.missing import missing
from tests.waiting import eventually


def _wakes() -> int:
    """Count how often this process's threads of that name woke up: the newest one's."""
    [task] = [each for each in threading.enumerate() if each.name == "health"]
    status = Path(f"/proc/self/task/{task.native_id}/status").read_text()
    return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])


def test_answers_and_ends() -> None:
    """What is asked is answered; after its end nobody listens."""
    health = StatusServer(("127.0.0.1", 0), {"/healthz": lambda: (HTTPStatus.OK, "ok\n")}, "health")
    url = f"http://127.0.0.1:{health.port}"
    with urllib3.PoolManager(retries=False) as pool:
        answers = [pool.request("GET", f"{url}{path}").status for path in ("/healthz", "/else")]
    health.stop()

    assert answers == [200, 404]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", health.port)) != 0


def test_listens_on_addresses_of_both_families() -> None:
    """IPv6's loopback is an address like any other."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        missing("this machine has no IPv6")
    server = StatusServer(("::1", 0), {"/": lambda: (HTTPStatus.OK, "ok\n")}, "health")
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request("GET", f"http://[::1]:{server.port}/")
    server.stop()

    assert answer.data == b"ok\n"


def test_refuses_what_is_no_host() -> None:
    """Python has another kind of error for such a name."""
    with pytest.raises(InvalidError, match="listened on for health: it names no host"):
        StatusServer(("ü..b", 1), {}, "health")


@pytest.mark.clocked
def test_sleeps_while_nobody_asks() -> None:
    """It waits for a connection and for nothing else; that keeps nobody from ending it."""
    health = StatusServer(("127.0.0.1", 0), {}, "health")
    time.sleep(0.1)
    before = _wakes()
    time.sleep(0.5)
    woke = _wakes() - before
    health.stop()

    assert woke == 0


def _ok() -> tuple[HTTPStatus, str]:
    return HTTPStatus.OK, "ok\n"


def test_a_client_that_drips_is_disconnected() -> None:
    """Each byte arrives in time, and the request never ends: a connection has a deadline."""
    server = StatusServer(("127.0.0.1", 0), {"/": _ok}, "health", seconds=0.5)

    def drip(client: socket.socket) -> None:
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(200):
            time.sleep(0.05)
            client.sendall(b"x")

    with (
        socket.create_connection(("127.0.0.1", server.port)) as client,
        pytest.raises(ConnectionError),
    ):
        drip(client)
    server.stop()


def test_connections_are_few() -> None:
    """For one more the oldest is closed: held connections keep no probe out."""
    server = StatusServer(("127.0.0.1", 0), {"/": _ok}, "health", seconds=20)
    request = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"

    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(MOST)]
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as probe:
        probe.sendall(request)
        served = probe.recv(100)
    closed = idle[0].recv(100)
    still_open, _, _ = select.select(idle[1:], [], [], 0)
    for each in idle:
        each.close()
    server.stop()

    assert served.startswith(b"HTTP/1.1 200")
    assert closed == b""
    assert still_open == []


_HELLO = bytes.fromhex("160301020001000001fc0303") + bytes(range(256)) * 2


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /heal", id="half a request"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50, id="requests, and reads no answer"),
        pytest.param(_HELLO, id="TLS"),
        pytest.param(b"\x00\xff\r\n\r\n", id="garbage"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="another HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n", id="many headers"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="another method"),
        pytest.param(b"x" * 70_000, id="a line without end"),
    ],
)
def test_clients_that_leave_or_send_no_request_are_no_errors(
    sent: bytes, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a line nor a traceback is written, and the next client is answered."""
    others = _serving()
    long = "ok\n" * 100_000
    server = StatusServer(("127.0.0.1", 0), {"/": lambda: (HTTPStatus.OK, long)}, "health")
    for leaves_at_once in (True, False) * 10:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            with suppress(OSError):
                client.sendall(sent)
                if not leaves_at_once:
                    client.shutdown(socket.SHUT_WR)
                    client.recv(9)
            # The connection is reset, whatever the server still writes.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually("no connection is served", lambda: _serving() <= others)
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request("GET", f"http://127.0.0.1:{server.port}/")
    server.stop()

    assert answer.data == long.encode()
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def _serving() -> set[threading.Thread]:
    """Return the threads that serve connections, or end them when their time is over."""
    return {each for each in threading.enumerate() if "process_request_thread" in each.name}


_EXHAUSTED = """
import os, resource, socket, time
from http import HTTPStatus
from bellhop.adapters.local.status_server import StatusServer

server = StatusServer(("127.0.0.1", 0), {"/": lambda: (HTTPStatus.OK, "ok")}, "health")
client = socket.socket()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
client.connect(("127.0.0.1", server.port))
client.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
before = time.process_time()
time.sleep(1)
used = time.process_time() - before
for each in taken:
    os.close(each)
client.settimeout(20)
print(used < 0.1, client.recv(12))
"""


@pytest.mark.clocked
def test_pauses_where_there_are_no_files_left() -> None:
    """A connection that cannot be accepted waits in the queue: asking at once would spin."""
    done = subprocess.run(
        [sys.executable, "-c", _EXHAUSTED], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout == "True b'HTTP/1.1 200'\n", done.stderr
