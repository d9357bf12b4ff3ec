"""kubectl, and a server that nothing may call."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.errors import MissingError
from bellhop.programs.program import KUBECTL


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """The program; without it a test is skipped locally and fails in CI."""
    try:
        return KUBECTL.find()
    except MissingError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


class Uncalled:
    """A port of loopback: whoever connects to it is found in its backlog."""

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
