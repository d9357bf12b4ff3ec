"""The lab's one etcd, and a way to set a cluster in it back to how it was.

Emptying a cluster through its API takes seconds and needs controllers. Its keys are all below
one prefix in etcd, and etcd's JSON gateway (`/v3/kv/`) changes hundreds of them in one
transaction; the API server follows its watch within milliseconds.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellhop.errors import UnreachableError
from infra.lab.port import Port
from infra.lab.processes import Nursery, Process

_BOOT_SECONDS = 30.0
_PORT_TRIES = 5


@dataclass(frozen=True)
class Entry:
    """A key's value, and the revision that wrote it; the value is empty where none was asked."""

    value: bytes
    revision: int


class Etcd:
    """A single-member etcd on the loopback address."""

    def __init__(self, program: Path, folder: Path, nursery: Nursery) -> None:
        self._program = program
        self._folder = folder
        self._nursery = nursery
        self._port = 0
        self.log_path = folder / "etcd.log"

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start and wait until it answers.

        Raises:
            UnreachableError: It does not come up; the message ends with its last log lines.
        """
        # Unlike an API server it cannot share a held port, so one may be lost to another program.
        for _ in range(_PORT_TRIES):
            process = self._spawn()
            if self._wait(process):
                return
            process.stop()
            if "address already in use" not in self.log_path.read_text("utf-8", "replace"):
                break
            self.log_path.unlink()
        raise UnreachableError(f"etcd did not start, its last words: {process.last_words()}")

    def entries(self, prefix: str, *, values: bool = True) -> dict[str, Entry]:
        """Read every entry below a prefix."""
        answer = self._call(
            "kv/range",
            {"key": _b64(prefix), "range_end": _b64(_after(prefix)), "keys_only": not values},
        )
        return {
            base64.b64decode(item["key"]).decode(): Entry(
                base64.b64decode(item.get("value", "")), int(item["mod_revision"])
            )
            for item in answer.get("kvs", [])
        }

    def change(self, delete: set[str], put: dict[str, bytes]) -> int:
        """Delete and write keys in one transaction; returns its revision."""
        operations: list[dict[str, Any]] = [
            {"request_delete_range": {"key": _b64(key)}} for key in sorted(delete)
        ]
        operations += [
            {"request_put": {"key": _b64(key), "value": base64.b64encode(value).decode("ascii")}}
            for key, value in sorted(put.items())
        ]
        answer = self._call("kv/txn", {"success": operations})
        return int(answer["header"]["revision"])

    def _spawn(self) -> Process:
        port = Port()
        port.release()
        self._port = port.number
        return self._nursery.start(
            [
                self._program,
                f"--data-dir={self._folder / 'etcd'}",
                f"--listen-client-urls={self.url}",
                f"--advertise-client-urls={self.url}",
                "--listen-peer-urls=http://127.0.0.1:0",
                # A lab is thrown away: sparing the disk is worth more than surviving a crash.
                "--unsafe-no-fsync",
                # A single member need not wait for votes; each heartbeat costs, also if it is idle.
                "--heartbeat-interval=100",
                "--election-timeout=500",
                # A reset is one transaction over as many keys as a test has made.
                "--max-txn-ops=100000",
                f"--max-request-bytes={64 * 2**20}",
            ],
            self.log_path,
        )

    def _wait(self, process: Process) -> bool:
        until = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < until and process.wait(0.02) is None:
            try:
                self._call("maintenance/status", {})
            except (OSError, http.client.HTTPException, UnreachableError):
                continue
            return True
        return False

    def _call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("POST", f"/v3/{method}", json.dumps(body))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise UnreachableError(f"etcd answers {response.status} to '{method}'")
        answer: dict[str, Any] = json.loads(content)
        return answer


def _after(prefix: str) -> str:
    # The first key that no longer starts with the prefix.
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
