"""One execution environment of Lambda: a process under AWS' runtime client, and the API it asks.

    process                        Runtime API, on loopback               who invokes
      ── GET  …/invocation/next ──►    waits for an event      ◄── event
      ◄── event, number, deadline ──
      ── POST …/NUMBER/response ──►                            ──► answer
      ── GET  …/invocation/next ──►    frozen until the next event

A process that ends, that cannot import its handler, or that is late has no answer; it is told of
in Lambda's words, and is not used again.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from infra.lab.processes import Nursery
from infra.package.distributions import install, pinned
from infra.package.interpreter import PYTHON, find_interpreter, machine_architecture

_INIT_SECONDS = 10.0
_LOOK = 0.02
"""Seconds between two looks whether a process that owes an answer has ended."""


@dataclass(frozen=True)
class Runtime:
    """An interpreter of Lambda's version, and the folder that has the runtime client."""

    interpreter: Path
    client: Path
    python: str = PYTHON


@dataclass(frozen=True)
class Answer:
    """The result of one event: the body as it was sent, or one that describes the failure."""

    body: bytes
    failed: bool
    logs: str
    began: float
    took: float


@dataclass(frozen=True)
class _Report:
    """The process's messages to the API."""

    body: bytes
    failed: bool


def open_runtime(folder: Path) -> Runtime:
    """Install the runtime client, compiled as it is in Lambda, into a folder that is not there yet.

    Raises:
        MissingError: there is no Python of Lambda's version.
        PermanentError: uv cannot install the client.
    """
    interpreter = find_interpreter()
    install(folder, machine_architecture(), pinned("awslambdaric"))
    subprocess.run([interpreter, "-m", "compileall", "-q", folder], check=True)
    return Runtime(interpreter, folder)


class Environment:
    """A process that answers one event after the other."""

    def __init__(
        self,
        runtime: Runtime,
        path: Sequence[Path],
        variables: Mapping[str, str],
        *,
        arn: str,
        seconds: float,
        log_path: Path,
        nursery: Nursery,
    ) -> None:
        self._seconds = seconds
        self._log_path = log_path
        self._api = _Api(arn)
        self._started = time.monotonic()
        # What is installed beside the interpreter is not on the path: Lambda has none of it.
        python: list[str | Path] = [runtime.interpreter, "-S", "-m"]
        environment = {
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_RUNTIME_API": self._api.address,
            "LANG": "en_US.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",  # The folder of the code cannot be written to.
            "PYTHONPATH": ":".join(map(str, [*path, runtime.client])),
            "TZ": ":UTC",
            **variables,
        }
        argv = [*python, "awslambdaric", variables["_HANDLER"]]
        self._process = nursery.start(argv, log_path, cwd=path[0], env=environment)
        self._began: float | None = None
        self.alive = True

    def invoke(self, event: bytes, trace: str, seconds: float | None = None) -> Answer:
        """Have an event answered, within its own time-out if it has one; one at a time.

        `trace` is the header that the SDK sends along with the requests that follow.
        """
        allowed = self._seconds if seconds is None else seconds
        seen = self._log_path.stat().st_size
        self._process.thaw()
        number = str(uuid.uuid4())
        answer = None if self._awake(_INIT_SECONDS) else self._failure(number, _INIT_SECONDS)
        began = 0.0
        if answer is None and self._began is None:
            self._began = began = time.monotonic() - self._started
        since = time.monotonic()
        if answer is None:
            self._api.give(number, event, allowed, trace)
            answer = self._waited(number, allowed)
        took = time.monotonic() - since
        # Lambda freezes a process once it asks for the next event.
        if self.alive and self._awake(self._seconds):
            self._process.freeze()
        else:
            self.close()
        return Answer(answer.body, answer.failed, self._logs(seen), began, took)

    def kill(self) -> None:
        """Kill the process, wherever it is; its invoker gets an error."""
        self._process.kill()

    def close(self) -> None:
        """End the process, wherever it is."""
        if self.alive:
            self.alive = False
            self._process.stop(0)
            self._api.close()

    def _awake(self, seconds: float) -> bool:
        """Wait until the process asks for an event; False if it does not."""
        until = time.monotonic() + seconds
        while not self._api.asked.wait(_LOOK):
            if self._process.returncode() is not None or time.monotonic() > until:
                return False
        return True

    def _waited(self, number: str, seconds: float) -> _Report:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                return self._api.reports.get(timeout=_LOOK)
            except queue.Empty:
                if self._process.returncode() is not None:
                    break
        return self._failure(number, seconds)

    def _failure(self, number: str, seconds: float) -> _Report:
        """Report a process that has ended, or was late, and end it."""
        code = self._process.returncode()
        self.close()
        if not self._api.reports.empty():  # It said itself why it cannot begin, or its last words.
            return self._api.reports.get()
        if code is None:
            kind, what = "Sandbox.Timedout", f"Task timed out after {seconds:.2f} seconds"
        else:
            ended = f"signal: {-code}" if code < 0 else f"exit status {code}"
            kind, what = "Runtime.ExitError", f"Runtime exited with error: {ended}"
        failure = {"errorType": kind, "errorMessage": f"RequestId: {number} Error: {what}"}
        return _Report(json.dumps(failure).encode(), failed=True)

    def _logs(self, seen: int) -> str:
        with self._log_path.open("rb") as log:
            log.seek(seen)
            return log.read().decode("utf-8", "replace")


class _Api:
    """The Runtime API of one process."""

    def __init__(self, arn: str) -> None:
        self._arn = arn
        self._events: queue.Queue[tuple[str, bytes, float, str] | None] = queue.Queue()
        self.reports: queue.Queue[_Report] = queue.Queue()
        self.asked = threading.Event()
        self._server = _server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_LOOK,))
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def give(self, number: str, event: bytes, seconds: float, trace: str) -> None:
        """Give the process that asked its event, its trace, and so much time for it."""
        self.asked.clear()
        self._events.put((number, event, seconds, trace))

    def next(self) -> tuple[bytes, Mapping[str, str]] | None:
        """Wait for an event; None when there will be none any more."""
        self.asked.set()
        given = self._events.get()
        if given is None:
            return None
        number, event, seconds, trace = given
        deadline = int((time.time() + seconds) * 1000)
        return event, {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": number,
            "Lambda-Runtime-Deadline-Ms": str(deadline),
            "Lambda-Runtime-Invoked-Function-Arn": self._arn,
            "Lambda-Runtime-Trace-Id": trace,
        }

    def close(self) -> None:
        """Serve nobody any more."""
        self._events.put(None)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _server(api: _Api) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # Head and body in one write: the client waits for a second one for 40 ms.

        def do_GET(self) -> None:
            given = api.next()
            if given is None:
                self.close_connection = True
                return
            self._answer(200, *given)

        def do_POST(self) -> None:
            body = self._body()
            message = _Report(body, failed=self.path.endswith("/error"))
            api.reports.put(message)
            self._answer(202, b'{"status":"OK"}', {})

        def log_message(self, *_: Any) -> None:
            pass

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().strip() or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    return server
