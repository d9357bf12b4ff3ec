"""kubectl, and a server that nothing may call."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.adapters.programs.program import KUBECTL
from tests.missing import required


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """The program."""
    with required():
        return KUBECTL.find()


class Uncalled:
    """A port of loopback: each client that connects to it is found in its backlog."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def was_called(self) -> bool:
        """Say whether somebody has connected since, and hang up."""
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def wait(self) -> None:
        """Wait until somebody connects."""
        assert select.select([self._socket], [], [], 30)[0]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def uncalled() -> Iterator[Uncalled]:
    server = Uncalled()
    yield server
    server.close()
