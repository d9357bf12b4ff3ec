"""HTTP proxies between us and a server, which are asked to connect (`CONNECT`)."""

from __future__ import annotations

import base64
import re
import socket
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from bellhop.adapters.egress.answer import Deadline, LimitError
from bellhop.clusters.proxy_url import shown_proxy
from bellhop.errors import UnreachableError

_HEAD = 64 << 10
_PIECE = 4096
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})\b")


def place_of(proxy: str) -> tuple[str, int]:
    """Return the host and port of a proxy."""
    parts = urlsplit(proxy)
    return parts.hostname or "", parts.port or 80


def connect_through(
    connection: socket.socket, proxy: str, host: str, port: int, deadline: Deadline
) -> None:
    """Have the proxy at the other end of a connection connect it to a server.

    Raises:
        LimitError: it does not, or there is no time left.
        OSError: the connection breaks off.
    """
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_login(proxy)]
    connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        connection.settimeout(deadline.left())
        piece = connection.recv(_PIECE)
        head += piece
        if not piece or len(head) > _HEAD:
            raise _refused(proxy, "does not answer as one")
    found = _STATUS.match(head)
    # The server speaks only after us: nothing may follow the head.
    if not found or (found[1] == b"200" and not head.endswith(b"\r\n\r\n")):
        raise _refused(proxy, "does not answer as one")
    status = int(found[1])
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        raise _refused(proxy, "does not accept the login in `proxy-url`, or asks for one")
    if status != HTTPStatus.OK:
        raise _refused(proxy, f"answers {status}")


def _login(proxy: str) -> list[str]:
    parts = urlsplit(proxy)
    if not parts.username:
        return []
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}"]


def _refused(proxy: str, words: str) -> LimitError:
    return LimitError(UnreachableError, f"its proxy {shown_proxy(proxy)} {words}")
