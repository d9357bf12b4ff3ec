"""Whether a cluster is paused now, and until when: a function of its record and the time.

    opens    ──┬─────────────────────┬───────────
               ▼  active             ▼  active
    closes   ──────────┬────┬─────────────┬──────    whichever was last says which it is

Nobody has to be awake when a window opens or closes: whoever is to touch the cluster asks here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bellhop.errors import InvalidError
from bellhop.state.record import Cluster

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
    """A cluster is active from each time of `opens` to the next one of `closes`.

    Both are cron expressions of five fields, in UTC.
    """

    opens: str
    closes: str


class Pause(NamedTuple):
    """That a cluster is paused: `until` its window opens, or without a time until it is resumed."""

    until: datetime | None

    def __str__(self) -> str:
        """Say so, in words that follow the name of the cluster."""
        if self.until is None:
            return "is paused until `bellhop resume`"
        return f"is paused until {self.until:%Y-%m-%d %H:%M} UTC, when its maintenance window opens"


class Times(NamedTuple):
    """When a window opens and closes next."""

    opens: datetime
    closes: datetime


def window_in(cluster: Cluster) -> Window | None:
    """Return the window in which a cluster is active; None for one that always is."""
    window = cluster.spec.get("activeWindow")
    return Window(window["from"], window["to"]) if window else None


def pause_of(cluster: Cluster, now: datetime) -> Pause | None:
    """Return the pause of a cluster that is in one: by hand, or since its window is closed."""
    if cluster.spec.get("paused"):
        return Pause(None)
    window = window_in(cluster)
    if window is None or _is_open(window, now):
        return None
    return Pause(_opening(window, now))


def times(window: Window, now: datetime) -> Times:
    """Return when a window opens next, and when it closes next."""
    opens = _opening(window, now)
    return Times(opens, _next(window.closes, now if _is_open(window, now) else opens))


def standing(cluster: Cluster, now: datetime) -> str:
    """Say whether a cluster is paused, and until when, in words that follow its name."""
    pause, window = pause_of(cluster, now), window_in(cluster)
    if pause:
        return str(pause)
    if window is None:
        return "is active at any time"
    return f"is active until {times(window, now).closes:%Y-%m-%d %H:%M} UTC, when its window closes"


def window_of(opens: str, closes: str, now: datetime) -> Window:
    """Read a window as users write it.

    Raises:
        InvalidError: an expression is none that cron knows, or the window never opens.
    """
    window = Window(_read(opens, now), _read(closes, now))
    if not _is_open(window, _opening(window, now)):
        raise InvalidError(
            f"cannot use the window from '{opens}' to '{closes}': it closes whenever it opens, and"
            " the cluster would be paused for ever; write another time to close at"
        )
    return window


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
        # What cronsim says is the name of the field, behind the word Bad.
        field = str(error).removeprefix("Bad ")
        raise _unread(expression, f"its {field} is invalid for cron") from error
    return " ".join(fields)


def _unread(expression: str, said: str) -> InvalidError:
    return InvalidError(f"cannot read the cron expression '{expression}': {said}; {_FORM}")


def _is_open(window: Window, now: datetime) -> bool:
    """Say whether a window opened later than it closed; one that does both at once is closed."""
    opened, closed = _last(window.opens, now), _last(window.closes, now)
    return opened is not None and (closed is None or opened > closed)


def _opening(window: Window, now: datetime) -> datetime:
    """Return when a window opens next; if that is not soon found, a time at which to ask again."""
    found = _cron(window.opens, now)
    at = next(found)
    for _ in range(_MOST):
        if _is_open(window, at):
            break
        at = next(found)
    return at


def _next(expression: str, now: datetime) -> datetime:
    """Return the first time after now: what cron reads comes within some years."""
    return next(_cron(expression, now))


def _last(expression: str, now: datetime) -> datetime | None:
    """Return the last time until now, which may be now; None for none in fifty years."""
    return next(_cron(expression, now.replace(microsecond=0) + _SECOND, reverse=True), None)


def _cron(expression: str, now: datetime, *, reverse: bool = False) -> CronSim:
    # Not at the top: who has no window must not pay for this.
    from cronsim import CronSim  # noqa: PLC0415

    return CronSim(expression, now.astimezone(UTC), reverse=reverse)
