"""An API server that answers what a test has scripted, to say what a real one says too rarely."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bellhop.clusters.kubeconfig import Kubeconfig

CORE = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
        {"name": "secrets", "kind": "Secret", "namespaced": True},
        {"name": "namespaces", "kind": "Namespace", "namespaced": False},
    ],
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered; `drop` closes the connection instead."""

    code: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False

    @classmethod
    def status(cls, code: int, reason: str = "", message: str = "", **details: Any) -> Answer:
        """Answer with a Status, as API servers do."""
        body = {
            "kind": "Status",
            "code": code,
            "reason": reason,
            "message": message,
            "details": details,
        }
        return cls(code, body)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


Scripted = Answer | Callable[[Seen], Answer]


class ScriptedApi:
    """Answers greetings, discovery of the core group, and the rest in the order of the script.

    By `accepts` the API server itself accepts the credentials, whatever the script refuses.
    """

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.script: list[Scripted] = []
        self.open = 0
        self.greetings = 0
        self.accepts = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def kubeconfig(self) -> Kubeconfig:
        """Lead to this server."""
        return Kubeconfig(self.url, token="first")

    @property
    def url(self) -> str:
        """Return the address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, seen: Seen) -> Answer:
        """Take the next answer of the script."""
        if seen.path == "/api/v1":
            return Answer(body=CORE)
        if "/version?timeout=" in seen.path:
            self.greetings += 1
            return Answer(body={"major": "1"})
        if seen.path == "/api/v1/namespaces/kube-system":
            return Answer(200 if self.accepts else 401)
        self.seen.append(seen)
        assert self.script, f"asked once more than was scripted: {self.seen}"
        scripted = self.script.pop(0)
        return scripted if isinstance(scripted, Answer) else scripted(seen)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                api.open += 1

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                answer = api.answer(Seen(self.command, self.path, dict(self.headers), body))
                if answer.drop:
                    self.close_connection = True
                    return
                payload = answer.body
                if not isinstance(payload, bytes):
                    payload = json.dumps(payload).encode()
                self.send_response(answer.code)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_PATCH = do_DELETE = do_POST = answer  # noqa: N815 - the server's names

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    """Serve on loopback for one test; what was scripted must have been asked for."""
    scripted = ScriptedApi()
    yield scripted
    scripted.close()

    assert scripted.script == []
