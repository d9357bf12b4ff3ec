"""A chat and a mail server, which take what is sent to them on this machine and show it."""

from __future__ import annotations

import base64
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Chat:
    """A chat that answers with `status` and `answer`, and keeps what it took: path, token, body."""

    port: int = 0
    status: int = 200
    answer: bytes = b'{"ok": true}'
    taken: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        return [body.get("text", "") for _, _, body in self.taken]


@contextmanager
def chat() -> Iterator[Chat]:
    """Run a chat within the block."""
    found = Chat()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.taken.append((self.path, self.headers.get("Authorization", ""), body))
            self.send_response(found.status)
            if found.status in {301, 302, 307}:
                self.send_header("Location", f"{found.url}/elsewhere")
            self.send_header("Content-Length", str(len(found.answer)))
            self.end_headers()
            self.wfile.write(found.answer)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Post:
    """A mail server that refuses any password but `password`, and keeps mails with recipients."""

    port: int = 0
    password: str = ""
    refuses: int = 0
    mails: list[tuple[list[str], str]] = field(default_factory=list)


class _Mailing(socketserver.StreamRequestHandler):
    """Takes mails as a server does that knows AUTH PLAIN, and no TLS."""

    post: Post

    def handle(self) -> None:
        self._recipients: list[str] = []
        self._say("220 here")
        for line in self.rfile:
            word, _, rest = line.decode().strip().partition(" ")
            answer = getattr(self, f"_{word.lower()}", self._well)
            answer(rest)

    def _well(self, _: str) -> None:
        self._say("250 yes")

    def _quit(self, _: str) -> None:
        self._say("221 bye")

    def _ehlo(self, _: str) -> None:
        self._say("250-here", "250 AUTH PLAIN")

    def _auth(self, rest: str) -> None:
        sent = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
        well = sent[-1] == self.post.password
        self._say("235 yes" if well else "535 no such secret word")

    def _mail(self, _: str) -> None:
        self._say(f"{self.post.refuses} not now" if self.post.refuses else "250 yes")

    def _rcpt(self, rest: str) -> None:
        self._recipients.append(rest.partition("<")[2].partition(">")[0])
        self._say("250 yes")

    def _data(self, _: str) -> None:
        self._say("354 go on")
        lines = list(iter(self.rfile.readline, b".\r\n"))
        self.post.mails.append((self._recipients, b"".join(lines).decode()))
        self._say("250 taken")

    def _say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{each}\r\n" for each in lines).encode())


@contextmanager
def mail_server() -> Iterator[Post]:
    """Run a mail server within the block."""
    found = Post()
    handler = type("Mailing", (_Mailing,), {"post": found})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def dripping(head: bytes, drop: bytes, drops: int = 200) -> Iterator[int]:
    """Run a receiver that says `head`, then a drop every 20 ms for 4 s; yield its port."""
    over = threading.Event()

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.sendall(head)
                for _ in range(drops):
                    if over.wait(0.02):
                        return
                    self.request.sendall(drop)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            over.set()
            server.shutdown()
            thread.join()
