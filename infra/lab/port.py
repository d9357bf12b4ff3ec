"""Give a program a port that nobody else takes, even while the program is down."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

from bellhop.errors import UnreachableError

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _USUAL = 15_000, 32_768
_TRIES = 100
_given: set[int] = set()


class Port:
    """A port of the loopback address, held by a socket that never listens.

    A connection to it is refused unless a program shares it (`SO_REUSEPORT`) and listens. The
    program may therefore stop and come back, and no other gets its port in between.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Let anyone have the port."""
        self._socket.close()


def free_port() -> int:
    """Return a port that nobody has now, for a program that cannot share one with `Port`.

    No outgoing connection is given it, nor who asks this process next: a program that ends and
    comes back finds it free.

    Raises:
        UnreachableError: All that were tried are taken.
    """
    for number in random.sample(range(_FIRST, _first_of_connections()), _TRIES):
        with socket.socket() as probe, suppress(OSError):
            if number not in _given:
                probe.bind(("127.0.0.1", number))
                _given.add(number)
                return number
    raise UnreachableError(f"cannot find a free port in {_TRIES} tries")


def _first_of_connections() -> int:
    try:
        return int(_RANGE.read_text("ascii").split()[0])
    except OSError:
        return _USUAL
