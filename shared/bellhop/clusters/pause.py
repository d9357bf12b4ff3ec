"""Pauses and maintenance windows of clusters, computed from a cluster's record and the time.

    opens    ──┬─────────────────────┬───────────
               ▼  active             ▼  active
    closes   ──────────┬────┬─────────────┬──────    the last one before now decides

Nothing has to run when a window opens or closes: a worker asks before it writes to the cluster.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bellhop.errors import InvalidError, TemporaryError
from bellhop.state.cluster import Cluster
from bellhop.state.delays import opening_timer
from bellhop.state.messages import Instantiate
from bellhop.state.records import Records

if TYPE_CHECKING:
    from cronsim import CronSim

_LONGEST = 200
"""Characters of a cron expression: each field may list some values, and no more."""

_FIELDS = 5

_MOST = 1000
"""Times at which a window might open that are looked at for one at which it does not close."""

_FORM = "write minute, hour, day of month, month and day of week, in UTC, as in '0 20 * * 5'"

_SECOND = timedelta(seconds=1)

_SOON = timedelta(seconds=5)
"""Openings that are so near are left to the queue: clocks may differ."""


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
    """The times at which a window opens and closes next."""

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


def describe_pause(cluster: Cluster, now: datetime) -> str:
    """Return whether a cluster is paused, and until when, in words that follow its name."""
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
        # cronsim's error ends with the name of the field, after the word Bad.
        field = str(error).removeprefix("Bad ")
        raise _unread(expression, f"its {field} is invalid for cron") from error
    return " ".join(fields)


def _unread(expression: str, said: str) -> InvalidError:
    return InvalidError(f"cannot read the cron expression '{expression}': {said}; {_FORM}")


def _is_open(window: Window, now: datetime) -> bool:
    """Return whether a window opened later than it closed; one that does both at once is closed."""
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
    # Imported here, since most clusters have no window.
    from cronsim import CronSim  # noqa: PLC0415

    return CronSim(expression, now.astimezone(UTC), reverse=reverse)


class Pauses:
    """Holds events of paused clusters back until these are resumed, or their windows open."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def keeps_from(self, trigger: str, cluster: Cluster) -> bool:
        """Return whether a cluster is paused, so that its events have no effect for a trigger.

        Resuming the cluster publishes all of them again, and so does an opening window.

        Raises:
            TemporaryError: its window is about to open.
        """
        now = self._records.clock.now()
        pause = pause_of(cluster, now)
        if pause is None:
            return False
        if pause.until:
            name = opening_timer(trigger, cluster.key)
            leave_to_the_queue(f"cluster '{cluster.key}' {pause}", pause.until, now)
            timer = self._records.timers.get(name)
            if timer is None or timer.value.at != pause.until:
                again = Instantiate(trigger, cluster.key).message()
                self._records.timers.set(name, pause.until, again.body)
        return True


def leave_to_the_queue(said: str, until: datetime | None, now: datetime) -> None:
    """Raise a TemporaryError with a text if a window opens within the delay of a retry."""
    if until and until - now <= _SOON:
        raise TemporaryError(said, delay=until - now)
