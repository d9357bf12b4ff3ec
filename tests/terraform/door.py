"""The address that `ingest_url` names, on this machine: https in, the API's integration behind."""

from __future__ import annotations

import base64
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from infra.lab.certificates import write_certificates
from tests.terraform.cloud import Cloud
from tests.terraform.mappings import FailedError


class Door:
    """A server of HTTPS with an authority of its own, in `ca`."""

    def __init__(self, folder: Path, cloud: Cloud) -> None:
        write_certificates(folder, "door", ("127.0.0.1",))
        self.ca = folder / "ca.crt"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(cloud))
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_port}"

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


def _handler(cloud: Cloud) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        timeout = 60

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                answer = cloud.send(self.path, dict(self.headers), body)
            except FailedError:
                answer = {"statusCode": 500, "body": '{"message":"Internal Server Error"}'}
            told = answer["body"].encode()
            if answer.get("isBase64Encoded"):
                told = base64.b64decode(told)
            self.send_response(answer["statusCode"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
