"""A Prometheus in memory, over HTTP: values by query, and the ways in which a server fails."""

from __future__ import annotations

import ssl
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.lab.http_server import HttpServer, Request, Response

Series = list[tuple[dict[str, str], str]]


class FakePrometheus(HttpServer):
    """Answers instant queries by what `values` has for them; an unknown one finds no series.

    With an `authorization` it refuses a client that does not send it. A `reply` is what it says to
    everybody instead.
    """

    def __init__(self, *, authorization: str = "", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.values: dict[str, str | Series] = {}
        self.authorization = authorization
        self.reply: Response | None = None
        self.asked: list[str] = []

    def respond(self, request: Request) -> Response:
        parts = urlsplit(request.target)
        if parts.path != "/api/v1/query":
            return Response(HTTPStatus.NOT_FOUND, b"404 page not found")
        if self.authorization and request.headers.get("Authorization") != self.authorization:
            return Response(HTTPStatus.UNAUTHORIZED, b"who are you?")
        query = parse_qs(parts.query).get("query", [""])[0]
        self.asked.append(query)
        return self.reply or self._answer(query)

    def _answer(self, query: str) -> Response:
        if query.count("(") != query.count(")"):
            error = {"status": "error", "errorType": "bad_data", "error": f"parse error: {query}"}
            return Response.of(HTTPStatus.BAD_REQUEST, error)
        if query.endswith("]"):
            return _found("matrix", [{"metric": {}, "values": [[1.0, "1"], [2.0, "2"]]}])
        value = self.values.get(query, [])
        if isinstance(value, str):
            return _found("scalar", [1.5, value])
        series = [{"metric": labels, "value": [1.5, number]} for labels, number in value]
        return _found("vector", series)


def _found(kind: str, result: list[Any]) -> Response:
    data = {"resultType": kind, "result": result}
    return Response.of(HTTPStatus.OK, {"status": "success", "data": data})


def one(number: str) -> Series:
    """Return what an aggregation gives: one series without labels."""
    return [({}, number)]
