"""Connections to mail servers: each address is checked before it is called.

A server may answer one byte every few seconds, so a time-out of each read ends nothing: every mail
has one deadline as a whole, from the look-up of the name to the last byte.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import Self

from bellhop.adapters.egress.lookups import LOOKUPS, CrowdedError
from bellhop.adapters.notices.posting import SECONDS
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import InvalidError, UnreachableError


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
    reach: AddressPolicy,
    deadline: Deadline,
    resolve: Callable[[str, float], list[str]] = LOOKUPS.addresses,
) -> socket.socket:
    """Connect to a host that may be called, at an address that was checked.

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
