"""Whether who does the work is there, and can do it: one process, or functions that are called."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bellhop.frozen import frozen

LITTLE = 4 * 1024 * 1024
"""Bytes of a disk on which nothing is to be relied on any more."""


@frozen
class Vitals:
    """What can be seen of an installation in a folder, whether or not anything runs.

    `running` is whether a process holds the folder, which ends with the process however it ends.
    """

    folder: Path
    running: bool
    free: int

    @property
    def full(self) -> bool:
        """Say whether the disk is."""
        return self.free < LITTLE


@frozen
class Ticking:
    """An installation of functions, by name: that its schedule ticks is what shows of it."""

    name: str


def since(at: datetime | None) -> str:
    """Say since when; nothing where that is not known."""
    return f" since {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
