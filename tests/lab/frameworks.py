"""Cloud Run functions as buildpacks start them: functions-framework, and gunicorn below it.

    functions-framework --target TARGET --source STAGE/main.py --signature-type …

A function is a folder of sources. It is run with nothing on its path but that folder and what its
requirements name, which is linked from what is installed here: what else is installed, or is only
there to be edited, it does not find.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import sysconfig
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from bellhop.errors import UnreachableError
from infra.lab.port import free_port
from infra.lab.processes import Nursery, Process
from tests.lab import peers

_NAMES = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)
_BOOT_SECONDS = 60.0
_LOOKS = 0.02
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class Function:
    """Where a function's sources are and what they require, how it is called, and its environment.

    `installed` is a folder that `install` has made; `target` is what is called of the sources.
    """

    sources: Path
    installed: Path
    signature: str
    environment: Mapping[str, str] = field(default_factory=dict)
    target: str = "handle"


class Answer(NamedTuple):
    """What a function has answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Read the body."""
        return json.loads(self.body)


class Running:
    """One function, which may be killed and started again at the same address."""

    def __init__(self, name: str, function: Function, nursery: Nursery, log_path: Path) -> None:
        self._name = name
        self._function = function
        self._nursery = nursery
        self._log_path = log_path
        self._process: Process | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Return the address on which it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; `ready` waits until it answers."""
        about = self._function
        self._process = self._nursery.start(
            [
                *program(),
                *("-m", "functions_framework"),
                *("--target", about.target, "--source", about.sources / "main.py"),
                *("--signature-type", about.signature),
                *("--host", "127.0.0.1", "--port", str(self.port)),
            ],
            self._log_path,
            cwd=about.sources,
            env={"PYTHONPATH": str(about.installed), **about.environment},
        )

    def ready(self) -> None:
        """Wait until it answers.

        Raises:
            UnreachableError: it does not; the message ends with its last log lines.
        """
        until = time.monotonic() + _BOOT_SECONDS
        process = self._process
        while process and time.monotonic() < until and process.wait(_LOOKS) is None:
            try:
                # No function is asked for it, and its framework answers all the same.
                self.ask("GET", "/robots.txt")
            except (OSError, http.client.HTTPException):
                continue
            return
        words = process.last_words() if process else ""
        raise UnreachableError(f"the function {self._name} did not start, its last words: {words}")

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def kill(self) -> None:
        """End it at once, whatever it has in flight, as a machine that fails would."""
        if self._process:
            self._process.stop(grace=0)

    def terminate(self) -> None:
        """Ask it to end once it has answered what it has in flight, as Cloud Run does."""
        if self._process:
            self._process.terminate()

    def ended(self, seconds: float) -> int | None:
        """Wait for its end at most so long, and return how it ended."""
        return self._process.wait(seconds) if self._process else None

    def freeze(self) -> None:
        """Halt it wherever it is."""
        if self._process:
            self._process.freeze()

    def thaw(self) -> None:
        """Let it go on."""
        if self._process:
            self._process.thaw()

    def asker(self, peer: str) -> int | None:
        """Return which of its processes asks from an address; None for an address of another's."""
        return peers.asker(peer, self._process.pid) if self._process else None

    def lines(self) -> list[dict[str, Any]]:
        """Return what it has logged, as far as that is JSON and whole: it may write just now."""
        whole, _, _ = self.log().rpartition("\n")
        return [json.loads(each) for each in whole.splitlines() if each.startswith("{")]

    def log(self) -> str:
        """Return all that it has written."""
        return self._log_path.read_text("utf-8", "replace") if self._log_path.exists() else ""


class Functions:
    """A set of functions by name; they end with the process that made them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Nobody waits for what they have in flight in the end.
        self._nursery = Nursery(grace=0)
        self._running: dict[str, Running] = {}

    def add(self, name: str, function: Function) -> Running:
        """Have one more function, which is not started yet."""
        log_path = self._folder / f"{name}.log"
        self._running[name] = Running(name, function, self._nursery, log_path)
        return self._running[name]

    def start(self) -> None:
        """Start all of them, at once, and wait until they answer."""
        for each in self._running.values():
            each.start()
        for each in self._running.values():
            each.ready()

    def __getitem__(self, name: str) -> Running:
        """Return one of them."""
        return self._running[name]

    def lines(self) -> list[dict[str, Any]]:
        """Return what all of them have logged."""
        return [line for each in self._running.values() for line in each.lines()]

    def close(self) -> None:
        """End them."""
        self._nursery.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def program() -> list[str]:
    """Return what runs Python with nothing on its path but what PYTHONPATH says."""
    return [sys.executable, "-P", "-S"]


def install(sources: Path, into: Path) -> Path:
    """Link what the sources of a function require from what is installed here; return where.

    It stands for an environment that a buildpack would make again.
    """
    site = Path(sysconfig.get_path("purelib"))
    required = _NAMES.findall((sources / "requirements.txt").read_text("utf-8"))
    for place in {each for name in required for each in _places(name, site)}:
        (into / place).parent.mkdir(parents=True, exist_ok=True)
        (into / place).symlink_to(site / place)
    return into


@cache
def _places(name: str, site: Path) -> frozenset[Path]:
    """Return the packages of a distribution, and its files that are in none."""
    files = (Path(each) for each in metadata.files(name) or ())
    return frozenset(_whole(site, each) for each in files if ".." not in each.parts)


@cache
def _is_whole(folder: Path) -> bool:
    return (folder / "__init__.py").exists() or folder.suffix in {".dist-info", ".libs"}


def _whole(site: Path, place: Path) -> Path:
    """Return the package that a file is of, or the file where several distributions share one."""
    for folder in list(reversed(place.parents))[1:]:
        if _is_whole(site / folder):
            return folder
    return place
