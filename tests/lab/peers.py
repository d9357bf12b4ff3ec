"""Find the process of a program that has asked, so that it can be killed or halted at that request.

Only Linux says so: a connection is a line of /proc/net/tcp or tcp6 with the number of its socket,
and who has it open has a link to that socket in /proc/PID/fd.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
_LOOPBACK = "0100007F"
"""127.0.0.1 as the kernel writes it, which also ends it where it is written as one of IPv6."""

_OWN, _INODE = 1, 9
"""Columns: the own end of a connection, and its socket."""


def asker(peer: str, group: int) -> int | None:
    """Return the process of a group that asks from `ipv4:127.0.0.1:PORT`; None if none of it does.

    A process that has ended meanwhile asks no more.
    """
    own = f"{_LOOPBACK}:{int(peer.rpartition(':')[2]):04X}"
    lines = [line.split() for each in _TABLES for line in each.read_text("ascii").splitlines()]
    sockets = {f"socket:[{line[_INODE]}]" for line in lines if line[_OWN].endswith(own)}
    return next((each for each in _members(group) if sockets & set(_files(each))), None)


def _members(group: int) -> Iterator[int]:
    for each in Path("/proc").iterdir():
        with suppress(ValueError, ProcessLookupError):
            if os.getpgid(int(each.name)) == group:
                yield int(each.name)


def _files(process: int) -> Iterator[str]:
    with suppress(OSError):
        for each in Path(f"/proc/{process}/fd").iterdir():
            # One that was closed while this looks is nobody's.
            with suppress(OSError):
                yield str(each.readlink())
