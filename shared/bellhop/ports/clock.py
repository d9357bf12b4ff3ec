"""Time, so that tests can move it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The time, and a steady count of how much of it passes."""

    def now(self) -> datetime:
        """Return the time, aware, in UTC. It may jump, ahead or back."""
        ...

    def steady(self) -> timedelta:
        """Return the time since the machine booted. It never jumps, and begins again at a boot."""
        ...

    def boot(self) -> str:
        """Return the id of the machine's present boot: only within one can `steady` be compared."""
        ...
