"""A server of a few things by their paths, which remembers what it was asked."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus

from tests.lab.http_server import HttpServer, Request, Response

Answer = bytes | Response | Callable[[Request], Response]


class Site(HttpServer):
    """Answers with what lies at a path; with an account, only who names it."""

    def __init__(
        self,
        files: Mapping[str, Answer] | None = None,
        account: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(tls)
        self.files: dict[str, Answer] = dict(files or {})
        self.asked: list[Request] = []
        self._account = account and basic(*account)
        self._lock = threading.Lock()

    def respond(self, request: Request) -> Response:
        with self._lock:
            self.asked.append(request)
        if self._account and request.headers.get("Authorization") != self._account:
            return Response(
                HTTPStatus.UNAUTHORIZED, b"", {"WWW-Authenticate": 'Basic realm="charts"'}
            )
        found = self.files.get(request.target, self.files.get(request.target.partition("?")[0]))
        if found is None:
            return Response(HTTPStatus.NOT_FOUND, b"none")
        if isinstance(found, bytes):
            return Response(HTTPStatus.OK, found)
        return found if isinstance(found, Response) else found(request)

    @property
    def targets(self) -> list[str]:
        return [each.target for each in self.asked]


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
