"""Google's Cloud Storage on this machine: what Bellhop asks of its JSON API, over HTTP.

Of it there is no emulator. Objects are replaced whole; a bucket must have been made.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

_BUCKETS = re.compile(r"/storage/v1/b(?:/([^/]+))?")
_OBJECTS = re.compile(r"(/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?")
Answer = tuple[HTTPStatus, bytes]


@dataclass(frozen=True)
class _Fault:
    method: str
    status: int
    served: bool


class Storage:
    """One server with the buckets of all projects; it ends with its process."""

    def __init__(self) -> None:
        self._buckets: dict[str, dict[str, bytes]] = {}
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._faults: list[_Fault] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def address(self) -> str:
        """Tell where it listens, as Google's libraries want it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def make(self, bucket: str) -> None:
        """Make a bucket."""
        with self._lock:
            self._buckets[bucket] = {}

    def buckets(self) -> list[str]:
        """Tell the buckets that there are."""
        with self._lock:
            return sorted(self._buckets)

    def requests(self) -> dict[str, int]:
        """Count the requests since this was asked last, by method."""
        with self._lock:
            found, self._requests = dict(self._requests), Counter()
            return found

    def fail(self, method: str, status: int = 0, *, served: bool = False, times: int = 1) -> None:
        """Have the next requests by a method fail, by an answer or, without status, by none.

        `served` says that each is done before: the answer alone is lost.
        """
        with self._lock:
            self._faults += [_Fault(method, status, served)] * times

    def forgive(self) -> None:
        """Forget the failures that were asked for and did not happen yet."""
        with self._lock:
            self._faults.clear()

    def answer(self, method: str, target: str, body: bytes) -> Answer | None:
        """Answer a request; None if its answer is to be lost."""
        with self._lock:
            self._requests[method] += 1
            fault = next((each for each in self._faults if each.method == method), None)
            if fault:
                self._faults.remove(fault)
            told = self._served(method, target, body) if not fault or fault.served else None
        if fault:
            return (HTTPStatus(fault.status), b"as told") if fault.status else None
        return told

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _served(self, method: str, target: str, body: bytes) -> Answer:
        parts = urlsplit(target)
        found, asked = _OBJECTS.fullmatch(parts.path), parse_qs(parts.query)
        if found is None:
            return self._changed(method, _BUCKETS.fullmatch(parts.path), body)
        objects = self._buckets.get(unquote(found[2]))
        if objects is None:
            return HTTPStatus.NOT_FOUND, b"no such bucket"
        if found[1] and method == "POST" and asked["uploadType"] == ["media"]:
            objects[asked["name"][0]] = body
            return HTTPStatus.OK, b"{}"
        if found[3] is None:
            return HTTPStatus.OK, json.dumps(
                {"items": [{"name": each} for each in objects]}
            ).encode()
        name = unquote(found[3])
        if name not in objects:
            return HTTPStatus.NOT_FOUND, b"no such object"
        if method == "DELETE":
            del objects[name]
            return HTTPStatus.NO_CONTENT, b""
        return HTTPStatus.OK, objects[name] if asked.get("alt") == ["media"] else b"{}"

    def _changed(self, method: str, found: re.Match[str] | None, body: bytes) -> Answer:
        """Make a bucket, or delete one that is empty."""
        if found is None:
            return HTTPStatus.NOT_FOUND, b"no such thing"
        if method == "POST":
            self._buckets[json.loads(body)["name"]] = {}
            return HTTPStatus.OK, b"{}"
        if method == "DELETE" and self._buckets.get(found[1]):
            return HTTPStatus.CONFLICT, b"not empty"
        gone = method != "DELETE" or self._buckets.pop(found[1], None) is None
        return (HTTPStatus.NOT_FOUND if gone else HTTPStatus.NO_CONTENT), b""


def _handler(storage: Storage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told = storage.answer(self.command, self.path, body)
            if told is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, content = told
            self.send_response(status)
            if status is not HTTPStatus.NO_CONTENT:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
