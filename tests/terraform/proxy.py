"""The address that `ingest_url` names, on this machine: https in, the API's integration behind."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

from infra.lab.certificates import write_certificates
from tests.lab.http_server import HttpServer, Request, Response
from tests.terraform.cloud import Cloud
from tests.terraform.mappings import FailedError


class Proxy(HttpServer):
    """A server of HTTPS with an authority of its own, in `ca`."""

    def __init__(self, folder: Path, cloud: Cloud) -> None:
        write_certificates(folder, "door", ("127.0.0.1",))
        self.ca = folder / "ca.crt"
        self._cloud = cloud
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        super().__init__(tls)

    def respond(self, request: Request) -> Response:
        """Have the function answer, as the API's integration does."""
        try:
            answer = self._cloud.send(request.target, dict(request.headers), request.body)
        except FailedError:
            return Response(500, b'{"message":"Internal Server Error"}')
        body = answer["body"].encode()
        if answer.get("isBase64Encoded"):
            body = base64.b64decode(body)
        return Response(answer["statusCode"], body, answer.get("headers", {}))
