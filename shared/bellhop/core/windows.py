"""Recurring windows of time, by the two cron expressions of `activeWindow` and `promotionWindow`.

    opens    ──┬─────────────────────┬───────────
               ▼  open               ▼  open
    closes   ──────────┬────┬─────────────┬──────    the last one before now decides

All expressions have five fields, and are in UTC. Nothing has to run when a window opens or closes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from cronsim import CronSim

_LONGEST = 200
"""Characters of a cron expression: each field may list some values, and no more."""

_FIELDS = 5

_MOST = 1000
"""Times at which a window might open that are looked at for one at which it does not close."""

_FORM = "write minute, hour, day of month, month and day of week, in UTC, as in '0 20 * * 5'"

_SECOND = timedelta(seconds=1)


class Window(NamedTuple):
    """A window is open from each time of `opens` to the next one of `closes`."""

    opens: str
    closes: str


class Times(NamedTuple):
    """The times at which a window opens and closes next."""

    opens: datetime
    closes: datetime


def next_times(window: Window, now: datetime) -> Times:
    """Return when a window opens next, and when it closes next."""
    opens = find_opening(window, now)
    return Times(opens, _next(window.closes, now if is_open(window, now) else opens))


def read_window(opens: str, closes: str, now: datetime) -> Window:
    """Read a window as users write it.

    Raises:
        InvalidError: an expression is none that cron knows, or the window never opens.
    """
    window = Window(_read(opens, now), _read(closes, now))
    if not is_open(window, find_opening(window, now)):
        raise InvalidError(
            f"cannot use the window from '{opens}' to '{closes}': it closes whenever it opens, and"
            " is never open; write another time to close at"
        )
    return window


def is_open(window: Window, now: datetime) -> bool:
    """Return whether a window opened later than it closed; one that does both at once is closed."""
    opened, closed = _last(window.opens, now), _last(window.closes, now)
    return opened is not None and (closed is None or opened > closed)


def find_opening(window: Window, now: datetime) -> datetime:
    """Return when a window opens next; if that is not soon found, a time at which to ask again."""
    found = _cron(window.opens, now)
    at = next(found)
    for _ in range(_MOST):
        if is_open(window, at):
            break
        at = next(found)
    return at


def _read(expression: str, now: datetime) -> str:
    """Return a cron expression with one space between its fields.

    Raises:
        InvalidError: it is none, or its day is in none of its months.
    """
    if len(expression) > _LONGEST:
        raise _unread(f"{expression[:_LONGEST]} …", f"it is longer than {_LONGEST} characters")
    fields = expression.split()
    if len(fields) != _FIELDS:
        raise _unread(expression, f"it needs five fields, and has {len(fields)}")
    from cronsim import CronSimError  # noqa: PLC0415

    try:
        _next(" ".join(fields), now)
    except CronSimError as error:
        # cronsim's error ends with the name of the field, after the word Bad.
        field = str(error).removeprefix("Bad ")
        raise _unread(expression, f"its {field} is invalid for cron") from error
    return " ".join(fields)


def _unread(expression: str, said: str) -> InvalidError:
    return InvalidError(f"cannot read the cron expression '{expression}': {said}; {_FORM}")


def _next(expression: str, now: datetime) -> datetime:
    """Return the first time after now: what cron reads comes within some years."""
    return next(_cron(expression, now))


def _last(expression: str, now: datetime) -> datetime | None:
    """Return the last time until now, which may be now; None for none in fifty years."""
    return next(_cron(expression, now.replace(microsecond=0) + _SECOND, reverse=True), None)


def _cron(expression: str, now: datetime, *, reverse: bool = False) -> CronSim:
    # Most clusters and promotions have no window.
    from cronsim import CronSim  # noqa: PLC0415

    return CronSim(expression, now.astimezone(UTC), reverse=reverse)
