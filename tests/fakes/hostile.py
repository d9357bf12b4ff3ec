"""An API server that quotes, in whatever it refuses, all that it was given."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bellhop.adapters.local.certificates import issue, make_authority

_CORE = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {"name": name, "kind": kind, "namespaced": namespaced, "verbs": ["get", "list", "patch"]}
        for name, kind, namespaced in (
            ("configmaps", "ConfigMap", True),
            ("secrets", "Secret", True),
            ("services", "Service", True),
            ("namespaces", "Namespace", False),
        )
    ],
}
_SERVED = {
    "/version": {"gitVersion": "v1.31.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
    "/api/v1": _CORE,
}


class Hostile:
    """A server that knows its kinds, and refuses the rest in turn with every kind of answer.

    `token` is the one that its kubeconfig has; `quoted` is all that it has given back.
    """

    def __init__(self, token: str) -> None:
        now = datetime.now(UTC)
        self._token = token
        self._authority = make_authority("hostile", now=now, validity=timedelta(days=1))
        self.quoted: list[str] = []
        hostile = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                given = f"{self.headers.get('Authorization')} {self.rfile.read(length).decode()}"
                served = _SERVED.get(self.path.partition("?")[0])
                status, body = (200, served) if served else hostile.refuse(given)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PATCH = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = self._wrapped(now)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def refuse(self, given: str) -> tuple[int, dict[str, Any]]:
        """Refuse something, with all of it in the answer."""
        self.quoted.append(given)
        code, reason = ((422, "Invalid"), (403, "Forbidden"), (500, "InternalError"))[
            len(self.quoted) % 3
        ]
        causes = [{"reason": "FieldValueInvalid", "message": given, "field": given}]
        details = {"name": given, "kind": given, "causes": causes}
        status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
        return code, {**status, "message": f"refused: {given}", "details": details}

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig that leads here."""
        authority = base64.b64encode(self._authority.certificate_pem).decode()
        server = f"https://127.0.0.1:{self._server.server_port}"
        cluster = {"server": server, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": cluster}],
            "users": [{"name": "x", "user": {"token": self._token}}],
        }

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def _wrapped(self, now: datetime) -> ssl.SSLSocket:
        pair = issue(self._authority, ["127.0.0.1"], now=now, validity=timedelta(hours=12))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair[0] + b"\n" + pair[1])
            file.flush()
            context.load_cert_chain(file.name)
        return context.wrap_socket(self._server.socket, server_side=True)
