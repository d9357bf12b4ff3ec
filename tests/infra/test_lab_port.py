"""Ports that a program finds free when it comes back."""

from __future__ import annotations

import socket
from pathlib import Path

from infra.lab.port import Port, free_port


def test_gives_no_port_twice_and_none_that_a_connection_takes() -> None:
    """All can be listened on, and lie below those of outgoing connections."""
    ports = [free_port() for _ in range(50)]
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    assert len(set(ports)) == 50
    assert max(ports) < first
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_a_port_that_is_held_refuses_connections() -> None:
    """Nobody listens on it until a program shares it."""
    port = Port()
    with socket.socket() as caller:
        assert caller.connect_ex(("127.0.0.1", port.number)) != 0
    port.release()
