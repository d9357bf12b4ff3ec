"""Connections to where users say: each address is judged before it is called.

A receiver may answer one byte every few seconds, so a time-out of each read ends nothing: every
call has one deadline as a whole, from the look-up of the name to the last byte.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

from bellhop.errors import DeniedError, InvalidError, ThrottledError, UnreachableError
from bellhop.lookups import LOOKUPS, CrowdedError
from bellhop.model.reach import Reach

SECONDS = 10.0
"""How long the look-up, the connection, the handshake or one read may take."""

WHOLE_SECONDS = 20.0
"""How long one call may take as a whole."""

_LONGEST = 64 * 1024
"""Bytes of an answer that are read."""

_OK = range(200, 300)
_BUSY = {408, 425, 429}
_BROKEN = 500


class Deadline:
    """The end of one call; its connection is shut down then, whatever it is waiting for."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._guards = ExitStack()

    def __enter__(self) -> Self:
        """Begin; leaving the block stops what watches the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        self._guards.close()

    @property
    def has_passed(self) -> bool:
        """Say whether the time is up."""
        return time.monotonic() >= self._end

    @property
    def seconds(self) -> float:
        """Return how long the next step may take; at least a moment, for 0 means for ever."""
        return max(min(SECONDS, self._end - time.monotonic()), 0.001)

    @property
    def reason(self) -> str:
        """Say what happened, as the end of an error."""
        return f"it took longer than {self._seconds:g} s"

    def guard(self, there: socket.socket) -> None:
        """Shut a connection down at the deadline, also under TLS that begins later."""
        twin = there.dup()  # TLS takes the socket over; its twin has the same connection.
        timer = threading.Timer(self._end - time.monotonic(), _shut, (twin,))
        timer.daemon = True
        self._guards.callback(twin.close)
        self._guards.callback(timer.join)
        self._guards.callback(timer.cancel)
        timer.start()


def _shut(there: socket.socket) -> None:
    with suppress(OSError):
        there.shutdown(socket.SHUT_RDWR)


def dial(
    host: str,
    port: int,
    reach: Reach,
    deadline: Deadline,
    resolve: Callable[[str, float], list[str]] = LOOKUPS.addresses,
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
        addresses = resolve(host, deadline.seconds)
    except (TimeoutError, CrowdedError) as error:
        raise UnreachableError(
            f"cannot reach '{host}': looking its name up takes too long"
        ) from error
    except (OSError, UnicodeError) as error:
        raise UnreachableError(f"cannot reach '{host}': its name is not known") from error
    for address in addresses:
        if refused := reach.refusal_of(ip_address(address)):
            raise InvalidError(f"cannot send a notice to '{host}': its address {refused}")
    try:
        there = socket.create_connection((addresses[0], port), timeout=deadline.seconds)
    except OSError as error:
        raise UnreachableError(f"cannot reach '{host}:{port}': it does not answer") from error
    deadline.guard(there)
    return there


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a socket that is there already."""

    def __init__(self, host: str, port: int, there: socket.socket) -> None:
        super().__init__(host, port, timeout=SECONDS)
        self.sock = there


def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    reach: Reach,
    seconds: float = WHOLE_SECONDS,
) -> bytes:
    """Post JSON and return the answer; what is said of an error names the host alone.

    Raises:
        InvalidError: the address is none that is called, or what is sent is refused.
        DeniedError: the credentials are refused.
        ThrottledError: the other side asks to slow down.
        UnreachableError: nobody answers, or nobody who can do it, or not in time.
    """
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    if not host or not (secure or (parts.scheme == "http" and reach.loopback)):
        raise InvalidError("cannot send a notice: its address is no https:// address")
    try:
        port = parts.port or (443 if secure else 80)
    except ValueError as error:
        raise InvalidError(f"cannot send a notice to '{host}': its port is none") from error
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    headers = {"Content-Type": "application/json", **headers}
    with Deadline(seconds) as deadline:
        there = dial(host, port, reach, deadline)
        try:
            if secure:
                there = ssl.create_default_context().wrap_socket(there, server_hostname=host)
            connection = _Connection(host, port, there)
            connection.request("POST", path, body, headers)
            with connection.getresponse() as answer:
                said, status = answer.read(_LONGEST), answer.status
        except (OSError, http.client.HTTPException, ValueError) as error:
            # What these errors quote may be the path, which has a secret in it.
            why = deadline.reason if deadline.has_passed else type(error).__name__
            raise UnreachableError(f"cannot send a notice to '{host}': {why}") from None
        finally:
            there.close()
        if deadline.has_passed:
            # An answer without a length ends with its connection, here by the deadline.
            raise UnreachableError(f"cannot send a notice to '{host}': {deadline.reason}")
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
