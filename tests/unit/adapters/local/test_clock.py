"""The machine's clock, and how times lie in files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from bellhop.adapters.local.clock import SystemClock, from_microseconds, to_microseconds


def test_reads_the_time_in_utc() -> None:
    """The time is aware, in UTC, and now."""
    before = datetime.now(UTC)
    now = SystemClock().now()

    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo == UTC


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC), id="one microsecond"),
        pytest.param(datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), id="before 1970"),
        pytest.param(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), id="the last"),
        pytest.param(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5.5))), id="India"),
    ],
)
def test_times_survive_as_counts(at: datetime) -> None:
    """A time comes back from its count exactly, in UTC."""
    assert from_microseconds(to_microseconds(at)) == at
    assert from_microseconds(to_microseconds(at)).tzinfo == UTC
