"""The lab's Google answers, counts what it is asked, fails where it is told to, and ends."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from bellhop.adapters.gcp.services import RefusedError, Services
from bellhop.errors import MissingError, UnreachableError
from infra.lab.google import FIRESTORE, Emulator, Program
from infra.lab.google_front import Front

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


def test_a_front_counts_and_fails_as_told(front: Front, google_project: str) -> None:
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
