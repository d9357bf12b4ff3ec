"""An OCI registry on the loopback address: Debian's `docker-registry`, with a folder of its own.

With an account it demands that one's name and password.
"""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path

import bcrypt

from bellhop.errors import UnreachableError
from infra.lab.port import free_port
from infra.lab.processes import Nursery

PROGRAM = "docker-registry"

_BOOT_SECONDS = 15.0
_PAUSE_SECONDS = 0.02
_ROUNDS = 4


class Registry:
    """One server, which answers without TLS."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        nursery: Nursery,
        account: tuple[str, str] | None = None,
    ) -> None:
        self._program = program
        self._folder = folder
        self._nursery = nursery
        self._account = account
        self._port = free_port()

    @property
    def host(self) -> str:
        """Return where it listens: an address and a port."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start and wait until it answers.

        Raises:
            UnreachableError: It does not come up; the message ends with its last log lines.
        """
        configuration = self._folder / "registry.json"  # JSON is YAML.
        configuration.write_text(json.dumps(self._configuration()), "utf-8")
        process = self._nursery.start(
            [self._program, "serve", configuration], self._folder / "registry.log"
        )
        until = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < until and process.wait(_PAUSE_SECONDS) is None:
            if self._answers():
                return
        words = process.last_words()
        raise UnreachableError(f"{PROGRAM} did not start, its last words: {words}")

    def _configuration(self) -> dict[str, object]:
        configuration: dict[str, object] = {
            "version": "0.1",
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(self._folder / "content")}},
            "http": {"addr": self.host},
        }
        if self._account:
            name, password = self._account
            hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(_ROUNDS)).decode()
            (self._folder / "htpasswd").write_text(f"{name}:{hashed}\n", "utf-8")
            configuration["auth"] = {
                "htpasswd": {"realm": "lab", "path": str(self._folder / "htpasswd")}
            }
        return configuration

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self.host, timeout=1)
        try:
            connection.request("GET", "/v2/")
            return connection.getresponse().status in (200, 401)
        except OSError:
            return False
        finally:
            connection.close()
