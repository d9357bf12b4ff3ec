"""A NATS server on the loopback address, with JetStream in a folder that is thrown away."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from bellhop.errors import UnreachableError
from infra.lab.port import free_port
from infra.lab.processes import Nursery, Process

PROGRAM = "nats-server"

_PLACES = (Path("/usr/sbin"), Path("/usr/local/sbin"))
_BOOT_SECONDS = 15.0


class Nats:
    """One server; it may stop and come back, on the same port and with what it kept."""

    def __init__(self, program: Path, folder: Path, nursery: Nursery, more: str = "") -> None:
        self._program = program
        self._folder = folder
        self._nursery = nursery
        self._process: Process
        self.port = free_port()
        self.log_path = folder / "nats.log"
        self.configure(more)

    @property
    def url(self) -> str:
        """Return the address to which clients connect."""
        return f"nats://127.0.0.1:{self.port}"

    def configure(self, more: str = "") -> None:
        """Write what the server reads at its next start: `more` is in its own configuration."""
        store = self._folder / "jetstream"
        lines = ["host: 127.0.0.1", f"port: {self.port}", f'jetstream: {{store_dir: "{store}"}}']
        (self._folder / "nats.conf").write_text("\n".join([*lines, more]) + "\n", "utf-8")

    def start(self) -> None:
        """Start and wait until it answers.

        Raises:
            UnreachableError: It does not come up; the message ends with its last log lines.
        """
        configuration = self._folder / "nats.conf"
        self._process = self._nursery.start(
            [self._program, "--config", configuration], self.log_path
        )
        until = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < until and self._process.wait(0.02) is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    if probe.recv(5) == b"INFO ":
                        return
            except OSError:
                continue
        words = self._process.last_words()
        raise UnreachableError(f"nats-server did not start, its last words: {words}")

    def stop(self) -> None:
        """End it as a machine that is switched off does."""
        self._process.kill()
        self._process.wait(10)


def beside(name: str = PROGRAM) -> Path | None:
    """Find the program where Debian's package has it, which ordinary users have on no path."""
    return next((place / name for place in _PLACES if (place / name).is_file()), None)
