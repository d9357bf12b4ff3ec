"""Serve what Google's OpenID Connect says of the caller, on this machine.

with Identity("ann@example.com") as identity:
    Services("a-project", emulators={"OPENID_CONNECT_EMULATOR_HOST": identity.address})
"""

from __future__ import annotations

from tests.lab.http_server import HttpServer, Request, Response


class Identity(HttpServer):
    """Names the same caller for each request."""

    def __init__(self, email: str) -> None:
        super().__init__()
        self._email = email

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        if (request.method, request.target) != ("GET", "/v1/userinfo"):
            return Response.of(404, {"error": "not_found"})
        return Response.of(200, {"sub": "1", "email": self._email, "email_verified": True})
