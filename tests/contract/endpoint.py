"""The address of a function: a server that takes what Pub/Sub pushes, and answers as one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.lab.http_server import HttpServer, Request, Response


class Endpoint(HttpServer):
    """Pass the body of each push to `answer`, which returns the status of the reply."""

    def __init__(self, answer: Callable[[dict[str, Any]], int]) -> None:
        super().__init__()
        self._answer = answer

    @property
    def url(self) -> str:
        return f"{self.address}/projects/p/topics/inbox"

    def respond(self, request: Request) -> Response:
        """Answer a push."""
        return Response(self._answer(json.loads(request.body)))
