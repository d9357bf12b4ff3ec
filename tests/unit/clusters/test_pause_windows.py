"""Whether clusters are paused: a function of what was asked for and the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from msgspec.structs import replace

from bellhop.clusters.pause import Pause, describe_pause, pause_of, window_in
from bellhop.core.windows import next_times, read_window
from bellhop.errors import InvalidError
from bellhop.state.cluster import Cluster

MONDAY = datetime(2026, 11, 23, 10, 50, tzinfo=UTC)
FRIDAY = datetime(2026, 11, 27, 20, tzinfo=UTC)
NEXT_MONDAY = datetime(2026, 11, 30, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WEEKEND = {"from": "0 20 * * 5", "to": "0 5 * * 1"}
EAST = Cluster("fleet", "east", {}, "v1.34.0", "", MONDAY)


def paused(at: datetime, window: dict[str, str] = WEEKEND) -> bool:
    return pause_of(replace(EAST, spec={"activeWindow": window}), at) is not None


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(MONDAY, True, id="outside"),
        pytest.param(FRIDAY - SECOND / 1000, True, id="a moment before it opens"),
        pytest.param(FRIDAY, False, id="as it opens"),
        pytest.param(FRIDAY + timedelta(days=1), False, id="within"),
        pytest.param(NEXT_MONDAY - SECOND / 1000, False, id="a moment before it closes"),
        pytest.param(NEXT_MONDAY, True, id="as it closes"),
    ],
)
def test_a_cluster_is_active_within_its_window(at: datetime, *, expected: bool) -> None:
    """From the moment at which it opens until the one at which it closes."""
    assert paused(at) == expected


@pytest.mark.parametrize(
    ("window", "at", "expected"),
    [
        pytest.param(("0 22 * * *", "0 4 * * *"), "23:00", False, id="over midnight, within"),
        pytest.param(("0 22 * * *", "0 4 * * *"), "12:00", True, id="over midnight, outside"),
        pytest.param(("0 8 * * *", "0 8,18 * * *"), "12:00", True, id="both at once: closed"),
        pytest.param(("0 8 * * *", "0 18 1 1 *"), "07:00", False, id="closes once a year"),
        pytest.param(("0 8 29 2 *", "0 9 29 2 *"), "12:00", True, id="opens in a leap year"),
    ],
)
def test_whichever_was_last_counts(window: tuple[str, str], at: str, *, expected: bool) -> None:
    """However far apart opening and closing are, and whichever of them is named first."""
    when = datetime.fromisoformat(f"2026-11-24T{at}:00+00:00")

    assert paused(when, {"from": window[0], "to": window[1]}) == expected


def test_a_pause_by_hand_has_no_end() -> None:
    """It counts before a window, which opens without an effect."""
    both = replace(EAST, spec={"paused": True, "activeWindow": WEEKEND})

    assert pause_of(both, FRIDAY) == Pause(None)
    assert pause_of(replace(EAST, spec={"paused": False}), FRIDAY) is None
    assert pause_of(EAST, FRIDAY) is None
    assert describe_pause(both, FRIDAY) == "is paused until `bellhop resume`"


def test_says_when_it_opens_and_closes() -> None:
    """As commands print it; while it is open the next closing is the one of this time."""
    one = replace(EAST, spec={"activeWindow": WEEKEND})
    window = window_in(one)
    assert window

    assert pause_of(one, MONDAY) == Pause(FRIDAY)
    assert next_times(window, MONDAY) == (FRIDAY, NEXT_MONDAY)
    assert next_times(window, FRIDAY) == (FRIDAY + timedelta(days=7), NEXT_MONDAY)
    assert describe_pause(one, MONDAY).startswith("is paused until 2026-11-27 20:00 UTC")
    assert describe_pause(one, FRIDAY).startswith("is active until 2026-11-30 05:00 UTC")
    assert describe_pause(EAST, FRIDAY) == "is active at any time"


def test_who_waits_until_it_opens_finds_it_open() -> None:
    """Whatever the window is: the end of a pause is no pause, and nothing before is its end.

    It takes seconds: two hundred windows are drawn, and the end of each pause is searched for.
    """
    draw = Random(7)
    for _ in range(200):
        opens, closes = (
            f"{draw.choice(['*/7', draw.randrange(60)])} {draw.choice(['*', draw.randrange(24)])}"
            f" * * {draw.choice(['*', '1-5', draw.randrange(7)])}"
            for _ in "ab"
        )
        try:
            window = read_window(opens, closes, MONDAY)
        except InvalidError:
            continue
        one = {"from": window.opens, "to": window.closes}
        at = MONDAY + timedelta(minutes=draw.randrange(20_000), seconds=draw.randrange(60))
        pause = pause_of(replace(EAST, spec={"activeWindow": one}), at)
        if pause and pause.until:
            assert pause.until > at
            assert not paused(pause.until, one)
            assert paused(pause.until - SECOND, one)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 20 * *", "it needs five fields, and has 4"),
        ("", "it needs five fields, and has 0"),
        ("@daily", "it needs five fields, and has 1"),
        ("61 * * * *", "its minute is invalid for cron"),
        ("0 24 * * *", "its hour is invalid for cron"),
        ("0 0 30 2 *", "its day-of-month is invalid for cron"),
        ("0 0 * * 8", "its day-of-week is invalid for cron"),
        ("0 0 31 4,6 *", "its day-of-month is invalid for cron"),
        ("a b c d e", "its minute is invalid for cron"),
        ("٣ * * * *", "its minute is invalid for cron"),
        ("1," * 200 + "1 * * * *", "it is longer than 200 characters"),
    ],
)
def test_refuses_what_is_no_cron_expression(expression: str, said: str) -> None:
    """One sentence says which field is wrong, and how it is written; it is not shown for ever."""
    for window in ((expression, "0 5 * * 1"), ("0 20 * * 5", expression)):
        with pytest.raises(InvalidError) as caught:
            read_window(*window, MONDAY)

        assert f"cannot read the cron expression '{expression[:200]}" in str(caught.value)
        assert said in str(caught.value)
        assert "minute, hour, day of month, month and day of week, in UTC" in str(caught.value)
        assert len(str(caught.value)) < 500


def test_refuses_a_window_that_never_opens() -> None:
    """Nobody means a pause for ever, which has a command of its own."""
    for opens, closes in (("0 8 * * *", "* * * * *"), ("0 8 * * *", "0 8 * * *")):
        with pytest.raises(InvalidError, match="it closes whenever it opens"):
            read_window(opens, closes, MONDAY)


def test_reads_spaces_as_one() -> None:
    """An expression that is copied from a table is kept as it is meant."""
    assert read_window(" 0  20 * * 5 ", "0 5\t* * MON", MONDAY) == ("0 20 * * 5", "0 5 * * MON")
