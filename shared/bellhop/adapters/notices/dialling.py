"""Connections to where users say: each address is judged before it is called."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from bellhop.errors import DeniedError, InvalidError, ThrottledError, UnreachableError
from bellhop.model.reach import Reach

SECONDS = 10.0
_LONGEST = 64 * 1024
"""Bytes of an answer that are read."""

_OK = range(200, 300)
_BUSY = {408, 425, 429}
_BROKEN = 500


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def dial(
    host: str, port: int, reach: Reach, resolve: Callable[[str, int], list[str]] = _addresses
) -> socket.socket:
    """Connect to a host that may be called, at an address that was judged.

    Raises:
        InvalidError: it may not be, or one of its addresses may not.
        UnreachableError: it does not answer.
    """
    refused = reach.refusal(host)
    if refused:
        raise InvalidError(f"cannot send a notice to '{host}': it {refused}")
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise UnreachableError(f"cannot reach '{host}': its name is not known") from error
    for address in addresses:
        if refused := reach.refusal_of(ip_address(address)):
            raise InvalidError(f"cannot send a notice to '{host}': its address {refused}")
    try:
        return socket.create_connection((addresses[0], port), timeout=SECONDS)
    except OSError as error:
        raise UnreachableError(f"cannot reach '{host}:{port}': it does not answer") from error


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a socket that is there already."""

    def __init__(self, host: str, port: int, there: socket.socket) -> None:
        super().__init__(host, port, timeout=SECONDS)
        self.sock = there


def post(url: str, body: bytes, headers: dict[str, str], reach: Reach) -> bytes:
    """Post JSON and return the answer; what is said of an error names the host alone.

    Raises:
        InvalidError: the address is none that is called, or what is sent is refused.
        DeniedError: the credentials are refused.
        ThrottledError: the other side asks to slow down.
        UnreachableError: nobody answers, or nobody who can do it.
    """
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    if not host or not (secure or (parts.scheme == "http" and reach.loopback)):
        raise InvalidError("cannot send a notice: its address is no https:// address")
    try:
        port = parts.port or (443 if secure else 80)
    except ValueError as error:
        raise InvalidError(f"cannot send a notice to '{host}': its port is none") from error
    there = dial(host, port, reach)
    try:
        if secure:
            there = ssl.create_default_context().wrap_socket(there, server_hostname=host)
        connection = _Connection(host, port, there)
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        said, status = answer.read(_LONGEST), answer.status
    except (OSError, http.client.HTTPException, ValueError) as error:
        # What these errors quote may be the path, which has a secret in it.
        kind = type(error).__name__
        raise UnreachableError(f"cannot send a notice to '{host}': {kind}") from None
    finally:
        there.close()
    if status not in _OK:
        raise _refusal(host, status)
    return said


def _refusal(host: str, status: int) -> Exception:
    said = f"cannot send a notice to '{host}': it answers {status}"
    if status in _BUSY:
        return ThrottledError(said)
    if status >= _BROKEN:
        return UnreachableError(said)
    if status in {401, 403}:
        return DeniedError(f"{said}; see whether the Secret still counts there")
    return InvalidError(f"{said}; see what the Secret names")
