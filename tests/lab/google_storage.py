"""Google's Cloud Storage on this machine: what Bellhop asks of its JSON API, over HTTP.

Of it there is no emulator. Objects are replaced whole; a bucket must have been made.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit

from tests.lab.http_server import HttpServer, Request, Response

_BUCKETS = re.compile(r"/storage/v1/b(?:/([^/]+))?")
_OBJECTS = re.compile(r"(/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?")


@dataclass(frozen=True)
class _Fault:
    method: str
    status: int
    served: bool


class Storage(HttpServer):
    """One server with the buckets of all projects; it ends with its process."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[str, dict[str, bytes]] = {}
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._faults: list[_Fault] = []

    def make(self, bucket: str) -> None:
        """Make a bucket."""
        with self._lock:
            self._buckets[bucket] = {}

    def buckets(self) -> list[str]:
        """Return the existing buckets."""
        with self._lock:
            return sorted(self._buckets)

    def requests(self) -> dict[str, int]:
        """Count the requests since this was asked last, by method."""
        with self._lock:
            found, self._requests = dict(self._requests), Counter()
            return found

    def fail(self, method: str, status: int = 0, *, served: bool = False, times: int = 1) -> None:
        """Have the next requests by a method fail, by an answer or, without status, by none.

        `served` says that each is done before: only the answer is lost.
        """
        with self._lock:
            self._faults += [_Fault(method, status, served)] * times

    def forgive(self) -> None:
        """Forget the failures that were asked for and did not happen yet."""
        with self._lock:
            self._faults.clear()

    def respond(self, request: Request) -> Response | None:
        """Answer a request; None if its answer is to be lost."""
        method = request.method
        with self._lock:
            self._requests[method] += 1
            fault = next((each for each in self._faults if each.method == method), None)
            if fault:
                self._faults.remove(fault)
            answer = self._served(request) if not fault or fault.served else None
        if fault:
            return Response(fault.status, b"as told") if fault.status else None
        return answer

    def _served(self, request: Request) -> Response:
        method, body = request.method, request.body
        parts = urlsplit(request.target)
        found, asked = _OBJECTS.fullmatch(parts.path), parse_qs(parts.query)
        if found is None:
            return self._changed(method, _BUCKETS.fullmatch(parts.path), body)
        objects = self._buckets.get(unquote(found[2]))
        if objects is None:
            return Response(HTTPStatus.NOT_FOUND, b"no such bucket")
        if found[1] and method == "POST" and asked["uploadType"] == ["media"]:
            objects[asked["name"][0]] = body
            return Response(HTTPStatus.OK, b"{}")
        if found[3] is None:
            return Response.of(HTTPStatus.OK, {"items": [{"name": each} for each in objects]})
        name = unquote(found[3])
        if name not in objects:
            return Response(HTTPStatus.NOT_FOUND, b"no such object")
        if method == "DELETE":
            del objects[name]
            return Response(HTTPStatus.NO_CONTENT, b"")
        return Response(HTTPStatus.OK, objects[name] if asked.get("alt") == ["media"] else b"{}")

    def _changed(self, method: str, found: re.Match[str] | None, body: bytes) -> Response:
        """Make a bucket, or delete one that is empty."""
        if found is None:
            return Response(HTTPStatus.NOT_FOUND, b"no such thing")
        if method == "POST":
            self._buckets[json.loads(body)["name"]] = {}
            return Response(HTTPStatus.OK, b"{}")
        if method == "DELETE" and self._buckets.get(found[1]):
            return Response(HTTPStatus.CONFLICT, b"not empty")
        missing = method != "DELETE" or self._buckets.pop(found[1], None) is None
        return Response(HTTPStatus.NOT_FOUND if missing else HTTPStatus.NO_CONTENT)
