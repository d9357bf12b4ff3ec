"""Start Google's own emulators on this machine: Firestore's and Pub/Sub's, from its Cloud SDK.

    from tests.lab.google import Emulator, FIRESTORE

    with Emulator(FIRESTORE, folder) as firestore:
        Services("a-project", emulators={"firestore": firestore.address})

Any project exists in them, empty and apart from all others: a test with an installation of its own
names one. They are run by Java itself, since the SDK's scripts and `gcloud` leave it behind when
they are ended.
"""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from bellhop.errors import MissingError, UnreachableError
from infra.lab.port import free_port
from infra.lab.processes import Nursery, Process

_BOOT_SECONDS = 60.0
_LOOKS = 0.05
_TRIES = 5
_JAVA = (
    *("-Xmx256m", "-Xss512k", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Duser.language=en"),
    # The second compiler pays after hours: in minutes it costs more than all that it compiles.
    "-XX:TieredStopAtLevel=1",
)


@dataclass(frozen=True)
class Program:
    """One emulator: where it lies in the SDK, how it is started, and a first request to make.

    The first one takes Java a second or more, which nobody's deadline is to pay.
    """

    name: str
    jars: str
    command: Callable[[str, int], tuple[str, ...]]
    first: tuple[str, str, str]


FIRESTORE = Program(
    "firestore",
    "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
    lambda jar, port: (
        *("-cp", jar, "com.google.cloud.datastore.emulator.firestore.CloudFirestore"),
        *("start", "--host=127.0.0.1", f"--port={port}"),
    ),
    (
        "POST",
        "/v1/projects/first/databases/(default)/documents:commit",
        '{"writes": [{"delete": "projects/first/databases/(default)/documents/a/b"}]}',
    ),
)
PUBSUB = Program(
    "pubsub",
    "platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar",
    lambda jar, port: ("-jar", jar, "--host=127.0.0.1", f"--port={port}"),
    ("PUT", "/v1/projects/first/topics/first", "{}"),
)


class Emulator:
    """One emulator; it ends with its starter, and forgets everything when it does.

    It may be stopped and started again: it comes back at the same address, empty.
    """

    def __init__(self, program: Program, folder: Path) -> None:
        self._program = program
        self._log_path = folder / f"{program.name}.log"
        self._nursery = Nursery()
        self._process: Process | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """Return the address on which it listens, as Google's libraries take it."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start and wait until it answers.

        Raises:
            MissingError: Java, or the emulator, is not on this machine.
            UnreachableError: it does not come up; the message ends with its last log lines.
        """
        java, jar = _java(), _jar(self._program)
        for _ in range(_TRIES):
            # It cannot choose a port by itself: somebody else may take this one meanwhile.
            port = self._port or free_port()
            command = [java, *_JAVA, *self._program.command(jar, port)]
            self._process = self._nursery.start(command, self._log_path)
            if self._answers(port):
                self._port = port
                return
        words = self._process.last_words() if self._process else ""
        raise UnreachableError(
            f"the emulator of {self._program.name} did not start, its last words: {words}"
        )

    def stop(self) -> None:
        """Kill it, as a machine that fails would."""
        if self._process:
            self._process.stop(grace=0)

    def freeze(self) -> None:
        """Have it answer nothing more, with its connections open."""
        if self._process:
            self._process.freeze()

    def thaw(self) -> None:
        """Have it answer again."""
        if self._process:
            self._process.thaw()

    def close(self) -> None:
        """End it."""
        self.stop()
        self._nursery.close()

    def _answers(self, port: int) -> bool:
        until = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < until and self._process and self._process.wait(_LOOKS) is None:
            try:
                if _asked(port, "GET", "/").strip() == b"Ok":
                    _asked(port, *self._program.first)
                    return True
            except (OSError, http.client.HTTPException):
                continue
        self.stop()
        return False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _asked(port: int, method: str, path: str, body: str = "") -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_BOOT_SECONDS)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection.getresponse().read()
    finally:
        connection.close()


def _java() -> str:
    if found := shutil.which("java"):
        return found
    raise MissingError("cannot start Google's emulators: there is no java; install a JRE 17 or 21")


def _jar(program: Program) -> str:
    if found := sorted((sdk() or Path("/nowhere")).glob(program.jars)):
        return str(found[-1])
    raise MissingError(
        f"cannot start the emulator of {program.name}: it is not on this machine; install the"
        f" Cloud SDK and its component {program.name}-emulator"
    )


@cache
def sdk() -> Path | None:
    """Find the Cloud SDK, beside its program or where that says, slowly; None if there is none."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        return None
    beside = Path(gcloud).resolve().parents[1]
    if (beside / "platform").is_dir():
        return beside
    done = subprocess.run(
        [gcloud, "info", "--format=value(installation.sdk_root)"],
        env={**os.environ, "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Path(done.stdout.strip()) if done.stdout.strip() else None
