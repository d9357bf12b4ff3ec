"""Whether who does the work is there, and can do it: one process, or functions that are called."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec import Struct

_MEBI = 1024 * 1024

LITTLE = 4 * _MEBI
"""Bytes of a disk on which nothing is to be relied on any more."""

SCARCE = 256 * _MEBI
"""Bytes of a disk of which somebody has to think; of a small disk it is a tenth."""

_SHARE = 10


class Room(Struct, frozen=True):
    """What is left of the disk of a folder; without `names` it can hold no further file."""

    folder: Path
    free: int
    size: int = 0
    names: bool = True

    @property
    def full(self) -> bool:
        """Say whether nothing can be written any more."""
        return self.free < LITTLE or not self.names

    @property
    def low(self) -> bool:
        """Say whether little is left, and something still can be written."""
        return not self.full and self.free < self._scarce

    @property
    def problem(self) -> str:
        """Say what is wrong, in a sentence; empty if there is room."""
        if not self.names:
            return "it can hold no further file (all its inodes are used), and nothing is written"
        if self.full:
            return f"it is full ({self.free // 1024} KiB are left), and nothing is written"
        if self.low:
            return (
                f"{self.free // _MEBI} MiB are left of {self.size // _MEBI} MiB; below"
                f" {LITTLE // _MEBI} MiB nothing is written, and no event is taken in"
            )
        return ""

    @property
    def _scarce(self) -> int:
        return min(SCARCE, self.size // _SHARE) if self.size else SCARCE


class ProcessStatus(Struct, frozen=True):
    """What can be seen of an installation in a folder, whether or not anything runs.

    `running` is whether a process holds the folder, which ends with the process however it ends.
    """

    folder: Path
    running: bool
    room: Room


class Ticking(Struct, frozen=True):
    """An installation of functions, by name: that its schedule ticks is what shows of it."""

    name: str


def since(at: datetime | None) -> str:
    """Say since when; nothing where that is not known."""
    return f" since {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
