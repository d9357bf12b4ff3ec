"""The machine's clock, the one that production uses."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """The machine's time, and how long it has been running."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def steady(self) -> timedelta:
        """Return the time since the machine booted, with the time that it was suspended.

        Where the system does not identify its boots (it is not Linux), this is the wall clock.
        """
        if not self.boot():
            return datetime.now(UTC) - _EPOCH
        return timedelta(microseconds=time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000)

    def boot(self) -> str:
        return _boot()


@cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def to_microseconds(at: datetime) -> int:
    """Count the microseconds since 1970, exactly: what the database files hold."""
    return (at - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the aware time, in UTC, of a count that `to_microseconds` made."""
    return _EPOCH + timedelta(microseconds=count)
