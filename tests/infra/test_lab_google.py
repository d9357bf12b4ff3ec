"""The lab's Google answers, counts its requests, fails on demand, and ends.

It also reports the callers.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from google.cloud.firestore_v1.types import CommitRequest

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.errors import MissingError, UnreachableError
from tests.lab.google import FIRESTORE, Emulator, Program
from tests.lab.google_front import Front
from tests.lab.peers import asker

DATABASE = "projects/p/databases/(default)"
WRITE = {"database": DATABASE, "writes": [{"delete": f"{DATABASE}/documents/a/b"}]}
NEVER = Program("nothing", "no/such.jar", lambda jar, _: (jar,), ("GET", "/", ""))


def test_an_emulator_ends_with_its_owner(tmp_path: Path) -> None:
    """Nothing is left of it: neither the process nor what listened."""
    with Emulator(FIRESTORE, tmp_path) as emulator:
        assert emulator._process
        pid = emulator._process.pid
        host, _, port = emulator.address.partition(":")

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


def test_what_is_not_on_this_machine_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to install: the emulator, or Java."""
    with pytest.raises(MissingError, match="nothing-emulator"):
        Emulator(NEVER, tmp_path).start()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="install a JRE"):
        Emulator(FIRESTORE, tmp_path).start()


def test_what_does_not_start_says_why(tmp_path: Path) -> None:
    """By the last words of its log."""
    wrong = Program("wrong", FIRESTORE.jars, lambda *_: ("-no-such-flag",), FIRESTORE.first)

    with pytest.raises(UnreachableError, match="no-such-flag"):
        Emulator(wrong, tmp_path).start()


def test_a_front_counts_and_fails_as_configured(front: Front, google_project: str) -> None:
    """Each request counts once, also one that fails; a failure does not last."""
    emulators = {"FIRESTORE_EMULATOR_HOST": front.address}
    services = Services(google_project, emulators=emulators, sleep=lambda _: None)
    taken = frozenset({"ABORTED"})
    front.fail("Commit", "ABORTED")
    with pytest.raises(RefusedError, match="ABORTED"):
        services.call("firestore", "commit", WRITE, doing="write", taken=taken)

    services.call("firestore", "commit", WRITE, doing="write")

    services.close()
    assert front.requests() == {"Commit": 2}
    assert front.requests() == {}


def test_a_front_records_who_was_served(firestore: Emulator, google_project: str) -> None:
    """And what he wrote, before he has the answer; of another group nobody has asked."""
    seen: list[tuple[str, int | None, int | None, bool]] = []

    def watches(operation: str, peer: str, request: bytes) -> None:
        wrote = DATABASE.encode() in request
        seen.append((operation, asker(peer, os.getpgid(0)), asker(peer, 1), wrote))

    with Front(firestore.address, watches=watches) as front:
        emulators = {"FIRESTORE_EMULATOR_HOST": front.address}
        services = Services(google_project, emulators=emulators, sleep=lambda _: None)
        front.fail("Commit")
        services.call("firestore", "commit", WRITE, doing="write")
        services.close()

    # What was refused was not served.
    assert seen == [("Commit", os.getpid(), None, True)]


def test_a_front_leaves_nothing_of_cancelled_calls(
    firestore: Emulator, google_project: str
) -> None:
    """Who asks ends his calls at any moment; no thread of the front is left after it."""
    database = f"projects/{google_project}/databases/(default)"
    request = CommitRequest.serialize(CommitRequest(database=database))
    before = set(threading.enumerate())
    with Front(firestore.address) as front, grpc.insecure_channel(front.address) as channel:
        commit = channel.unary_unary("/google.firestore.v1.Firestore/Commit")
        for number in range(40):
            with suppress(grpc.RpcError, grpc.FutureCancelledError):
                call = commit.future(request, timeout=1 + number)
                time.sleep(number / 10_000)
                call.cancel()
                call.result()

    left = set(threading.enumerate()) - before
    assert not [each for each in left if each.name.startswith("front")]
