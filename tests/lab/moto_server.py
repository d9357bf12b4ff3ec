"""Serve moto on a free port of loopback, count its requests, and fail on demand.

    GET /lab/requests       how many requests there were, by operation; as `dynamodb:conditions`,
                            how many were refused because their condition failed
    POST /lab/faults        a list of failures to come, one for a request each
    DELETE /lab/faults      forget those that did not happen
    POST /lab/hurries       a function, and within how many seconds it has to answer its next event
    POST /lab/time          messages that are hidden for longer than so many seconds are there again
    POST /lab/passed        so many seconds pass for all messages that are hidden or delayed
    GET /lab/access         what roles asked for, how often, and whether they may; DELETE forgets

Terraform's client closes its request as soon as an answer begins. On loopback that may be before it
has noticed that all of the request is sent: it then drops the answer and asks again, for what is
done by then. Here it gets the first answer again. AWS is never that near.

Where moto and AWS differ, the strict side is taken: moto looks at a condition and then writes,
and lets another thread write in between; here the requests of a service come one by one, but for
invocations of functions.
Who calls with a role's credentials may do what its policies allow, and functions run from their
zips. Run as `python -m tests.lab.moto_server FOLDER`; it says `listening on PORT` once it does.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from tests.lab import moto_manners, moto_recursion
from tests.lab.moto_access import Access, refusal, whose
from tests.lab.moto_functions import Runner

_INVOCATIONS = "/invocations"
_LOOKS = 0.02
"""Seconds between two looks for a message: who waits for one keeps nobody else waiting."""

_DEAD = "-dead"
"""Ends the names of Bellhop's queues of dead letters."""

_LETTERS = 0.1
"""Seconds of a request's wait at an empty queue: AWS waits as long as the request asks."""

_CONDITION = b"#ConditionalCheckFailedException"
_HEAD = 120
"""Bytes of an answer that say why it is a refusal."""

_TERRAFORM = "terraform-provider"
_SERVICE = re.compile(r"Credential=[^,/]+/\d+/[^/]+/([^/]+)/aws4_request")

Start = Callable[..., Any]


class _Moto(DomainDispatcherApplication):
    """Moto, which would list its own folders for each request to find its service."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._found: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:
        """Return which of its services a host is."""
        if host not in self._found:
            self._found[host] = super().get_backend_for_host(host)
            if self._found[host] == "apigateway":
                moto_manners.teach_rest_apis()
        return self._found[host]


class _Handler(MotoRequestHandler):
    def log_request(self, *_: object) -> None:
        """Write no line about a request: it would take a fifteenth of the time to answer one."""


class Front:
    """What stands before moto."""

    def __init__(
        self,
        app: Callable[[dict[str, Any], Start], Iterable[bytes]],
        access: Access,
        runner: Runner,
    ) -> None:
        self._app = app
        self._access = access
        self._runner = runner
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._requests: Counter[str] = Counter()
        self._faults: list[dict[str, Any]] = []
        self._answers: dict[str, tuple[tuple[Any, ...], bytes]] = {}
        """Answers to Terraform, by the id that its client gives to all attempts of one request."""

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Answer one request."""
        path = environ["PATH_INFO"]
        if path.startswith("/lab/"):
            return _answer(start, 200, self._command(environ, path.removeprefix("/lab/")))
        service, operation = _asked(environ)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        request = _find_id(environ)
        if request in self._answers:
            first, content = self._answers[request]
            start(*first)
            return [content]
        if denied := self._access.authorize(environ, body):
            return _whole(start, *refusal(denied))
        fault = self._note(f"{service}:{operation}", whose(environ))
        if fault is None or fault["served"]:
            lock = nullcontext() if path.endswith(_INVOCATIONS) else self._lock_of(service)
            serve = self._receive if operation == "ReceiveMessage" else self._serve
            headers: list[tuple[Any, ...]] = []
            content = serve(environ, lambda *given: headers.append(given), lock)
        if fault is None:
            if request:
                self._answers[request] = headers[0], content
            start(*headers[0])
            return [content]
        if fault["status"]:
            error = {"__type": fault["code"], "message": "as told", "Code": fault["code"]}
            return _answer(start, fault["status"], error)
        if fault["kills"]:
            self._runner.kill(whose(environ))
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return []

    def _serve(
        self, environ: dict[str, Any], start: Start, lock: AbstractContextManager[Any]
    ) -> bytes:
        with lock:
            answer = b"".join(self._app(environ, start))
        if _CONDITION in answer[:_HEAD]:
            with self._lock:
                self._requests["dynamodb:conditions"] += 1
        return answer

    def _receive(
        self, environ: dict[str, Any], start: Start, lock: AbstractContextManager[Any]
    ) -> bytes:
        """Wait for messages without the lock; moto is asked not to wait."""
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        wait = asked.get("WaitTimeSeconds", 0)
        if asked["QueueUrl"].endswith(_DEAD) and moto_manners.is_bare(asked["QueueUrl"]):
            wait = min(wait, _LETTERS)
        until = time.monotonic() + wait
        body = json.dumps({**asked, "WaitTimeSeconds": 0}).encode()
        while True:
            while time.monotonic() < until and not moto_manners.has_messages(asked["QueueUrl"]):
                time.sleep(_LOOKS)
            begun: list[Any] = []
            once = {**environ, "wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))}
            answer = self._serve(once, lambda *headers, to=begun: to.append(headers), lock)
            if answer != b"{}" or time.monotonic() >= until:
                start(*begun[0])
                return answer
            time.sleep(_LOOKS)

    def _command(self, environ: dict[str, Any], what: str) -> Any:
        if what == "access":
            if environ["REQUEST_METHOD"] == "DELETE":
                self._access.forget()
            return self._access.results()
        if what == "hurries":
            return self._runner.hurry(**_given(environ))
        if what == "time":
            with self._lock_of("sqs"):
                return moto_manners.pass_visibility(_given(environ))
        if what == "passed":
            with self._lock_of("sqs"):
                return moto_manners.pass_time(_given(environ))
        with self._lock:
            if what == "requests":
                return dict(self._requests)
            left = len(self._faults)
            if environ["REQUEST_METHOD"] == "DELETE":
                self._faults.clear()
            else:
                self._faults += _given(environ)
            return left

    def _lock_of(self, service: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(service, threading.Lock())

    def _note(self, operation: str, role: str) -> dict[str, Any] | None:
        with self._lock:
            self._requests[operation] += 1
            for place, fault in enumerate(self._faults):
                if fault["operation"] == operation and fault["role"] in ("", role):
                    fault["after"] -= 1
                    return self._faults.pop(place) if fault["after"] < 0 else None
        return None


def _given(environ: dict[str, Any]) -> Any:
    return json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))


def _asked(environ: dict[str, Any]) -> tuple[str, str]:
    found = _SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    target: str = environ.get("HTTP_X_AMZ_TARGET", "")
    operation = target.rpartition(".")[2] or environ["REQUEST_METHOD"]
    return found[1] if found else "", operation


def _find_id(environ: dict[str, Any]) -> str:
    """Return the id of a request of Terraform, the same for each attempt; of others, none."""
    if _TERRAFORM not in environ.get("HTTP_USER_AGENT", ""):
        return ""
    identity: str = environ.get("HTTP_AMZ_SDK_INVOCATION_ID", "")
    return identity


def _answer(start: Start, status: int, body: Any) -> Iterable[bytes]:
    return _whole(start, status, "application/x-amz-json-1.0", json.dumps(body).encode())


def _whole(start: Start, status: int, media: str, content: bytes) -> Iterable[bytes]:
    headers = [("Content-Type", media), ("Content-Length", str(len(content)))]
    start(f"{status} As Told", headers)
    return [content]


def main() -> None:
    """Serve until killed."""
    moto_manners.teach()
    moto_recursion.teach()
    access = Access()
    runner = Runner(Path(sys.argv[1]), access)
    front = Front(_Moto(), access, runner)
    server = make_server("127.0.0.1", 0, front, threaded=True, request_handler=_Handler)
    runner.adopt(f"http://127.0.0.1:{server.port}")
    sys.stdout.write(f"listening on {server.port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
