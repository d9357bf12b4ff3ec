"""Give a program a port that nobody else takes, even while the program is down."""

from __future__ import annotations

import socket


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
    """Return a port that nobody has now, for a program that cannot share one with `Port`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number
