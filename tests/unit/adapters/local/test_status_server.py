"""Probes and metrics: answered while it runs, and no reason to wake while nobody asks."""

from __future__ import annotations

import os
import socket
import threading
import time
from http import HTTPStatus
from pathlib import Path

import pytest
import urllib3

from bellhop.adapters.local.status_server import StatusServer
from bellhop.errors import InvalidError


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
        reason = "this machine has no IPv6"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    server = StatusServer(("::1", 0), {"/": lambda: (HTTPStatus.OK, "ok\n")}, "health")
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request("GET", f"http://[::1]:{server.port}/")
    server.stop()

    assert answer.data == b"ok\n"


def test_refuses_what_is_no_host() -> None:
    """Python has another kind of error for such a name."""
    with pytest.raises(InvalidError, match="listened on for health: it names no host"):
        StatusServer(("ü..b", 1), {}, "health")


@pytest.mark.timed
def test_sleeps_while_nobody_asks() -> None:
    """It waits for a connection and for nothing else; that keeps nobody from ending it."""
    health = StatusServer(("127.0.0.1", 0), {}, "health")
    time.sleep(0.1)
    before = _wakes()
    time.sleep(0.5)
    woke = _wakes() - before
    health.stop()

    assert woke == 0
