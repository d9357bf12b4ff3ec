"""The machine's clock, the one that production uses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class SystemClock:
    """What time the machine says it is."""

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""
        return datetime.now(UTC)


def to_microseconds(at: datetime) -> int:
    """Count the microseconds since 1970, exactly: what the database files hold."""
    return (at - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the aware time, in UTC, of a count that `to_microseconds` made."""
    return _EPOCH + timedelta(microseconds=count)
