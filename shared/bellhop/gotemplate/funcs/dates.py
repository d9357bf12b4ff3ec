"""Sprig's dates and durations. The local zone is UTC, wherever the template is rendered."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs.layouts import DAYS, MONTHS, Moment, format_moment, parse_moment
from bellhop.gotemplate.functions import Function, Table
from bellhop.gotemplate.limits import SLOWER
from bellhop.gotemplate.literals import MAX_INT, MIN_INT, quote
from bellhop.gotemplate.values import ANY, Int, Opaque, make_int

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FUNCTIONS = Table()
_add = FUNCTIONS.add

_TIME = "time.Time"
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6}
_NANOSECONDS |= {"s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_SECOND, _MINUTE, _HOUR = 10**9, 60 * 10**9, 3600 * 10**9
_DAY = 24 * _HOUR
_ROUNDED = ((365 * _DAY, "y"), (30 * _DAY, "mo"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"))
_ZERO_YEAR = datetime(1, 1, 1, tzinfo=UTC)


class Time(Opaque):
    """A point in time; its methods are those templates call."""

    __slots__ = ("moment",)
    go_type = _TIME
    methods: Mapping[str, Function] = {}

    def __init__(self, moment: Moment) -> None:
        self.moment = moment

    def go_string(self) -> str:
        """Return the time as Go prints it."""
        return format_moment(self.moment, "2006-01-02 15:04:05.999999999 -0700 MST")

    def encoded(self) -> str:
        """Return the time as RFC 3339 has it."""
        return format_moment(self.moment, "2006-01-02T15:04:05.999999999Z07:00")

    def shifted(self, nanoseconds: int) -> Time:
        try:
            at = self.moment.at + timedelta(microseconds=nanoseconds // 1000)
        except OverflowError as error:
            raise FunctionError("time out of range") from error
        return Time(Moment(at, self.moment.zone))

    def unix(self) -> int:
        return int((self.moment.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1))


def _method(name: str, call: Callable[..., Any], *parameters: str) -> tuple[str, Function]:
    return name, Function(name, call, parameters, most=SLOWER)


Time.methods = dict(
    (
        _method("Year", lambda time: make_int(time.moment.at.year)),
        _method("Month", lambda time: MONTHS[time.moment.at.month - 1]),
        _method("Day", lambda time: make_int(time.moment.at.day)),
        _method("Hour", lambda time: make_int(time.moment.at.hour)),
        _method("Minute", lambda time: make_int(time.moment.at.minute)),
        _method("Second", lambda time: make_int(time.moment.at.second)),
        _method("YearDay", lambda time: make_int(time.moment.at.timetuple().tm_yday)),
        _method("Weekday", lambda time: DAYS[time.moment.at.weekday()]),
        _method("Unix", lambda time: time.unix()),
        _method("UTC", lambda time: Time(_in_zone(time.moment, "UTC"))),
        _method("String", lambda time: time.go_string()),
        _method("Format", lambda time, layout: format_moment(time.moment, layout), "string"),
        _method("Before", lambda one, other: one.moment.at < other.moment.at, _TIME),
        _method("After", lambda one, other: one.moment.at > other.moment.at, _TIME),
        _method("Equal", lambda one, other: one.moment.at == other.moment.at, _TIME),
    )
)


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - few templates name a zone

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _in_zone(moment: Moment, name: str) -> Moment:
    at = moment.at.astimezone(_zone(name))
    return Moment(at, at.tzname() or "UTC")


def _now() -> Moment:
    return Moment(datetime.now(UTC), "UTC")


def _moment_of(value: Any) -> Moment:
    """Read a time, or seconds since 1970; anything else is now, as in sprig."""
    if isinstance(value, Time):
        return value.moment
    if isinstance(value, int) and not isinstance(value, bool | Opaque):
        try:
            return Moment(datetime.fromtimestamp(int(value), UTC), "UTC")
        except (OverflowError, OSError, ValueError) as error:
            raise FunctionError("time out of range") from error
    return _now()


@_add("now")
def now() -> Time:
    return Time(_now())


@_add("date", "string", ANY, most=SLOWER)
def date(layout: str, value: Any) -> str:
    return date_in_zone(layout, value, "Local")


@_add("dateInZone date_in_zone", "string", ANY, "string", most=SLOWER)
def date_in_zone(layout: str, value: Any, zone: str) -> str:
    return format_moment(_in_zone(_moment_of(value), zone), layout)


@_add("htmlDate", ANY)
def html_date(value: Any) -> str:
    """Write a date as HTML inputs take it."""
    return date("2006-01-02", value)


@_add("htmlDateInZone", ANY, "string")
def html_date_in_zone(value: Any, zone: str) -> str:
    """Write a date as HTML inputs take it, in a zone."""
    return date_in_zone("2006-01-02", value, zone)


@_add("dateModify date_modify", "string", _TIME, most=SLOWER)
def date_modify(duration: str, value: Time) -> Time:
    """Return the time a duration later; one that cannot be read changes nothing."""
    try:
        return must_date_modify(duration, value)
    except FunctionError:
        return value


@_add("mustDateModify must_date_modify", "string", _TIME, most=SLOWER)
def must_date_modify(duration: str, value: Time) -> Time:
    return value.shifted(parse_duration(duration))


@_add("toDate", "string", "string", most=SLOWER)
def to_date(layout: str, text: str) -> Time:
    """Read a time by a layout; one that cannot be read is the year 1."""
    try:
        return must_to_date(layout, text)
    except FunctionError:
        return Time(Moment(_ZERO_YEAR, "UTC"))


@_add("mustToDate", "string", "string", most=SLOWER)
def must_to_date(layout: str, text: str) -> Time:
    return Time(parse_moment(layout, text, UTC))


@_add("unixEpoch", _TIME)
def unix_epoch(value: Time) -> str:
    return str(value.unix())


# -- durations


def parse_duration(text: str) -> int:
    """Read a duration such as 1h30m in nanoseconds.

    Raises:
        FunctionError: in Go's words.
    """
    sign = -1 if text[:1] == "-" else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total = position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[2]):
            if match is None and rest[position:].replace(".", "").isdigit():
                raise FunctionError(f"time: missing unit in duration {quote(text)}")
            raise FunctionError(f"time: invalid duration {quote(text)}")
        unit = _NANOSECONDS.get(match[3])
        if unit is None:
            raise FunctionError(f"time: unknown unit {quote(match[3])} in duration {quote(text)}")
        total += _scaled(match[1], match[2], unit)
        position = match.end()
    if not rest or not MIN_INT <= sign * total <= MAX_INT:
        raise FunctionError(f"time: invalid duration {quote(text)}")
    return sign * total


def _scaled(whole: str, fraction: str | None, unit: int) -> int:
    value = int(whole[:20] or "0") * unit
    if fraction:
        value += int(fraction[:18]) * unit // 10 ** len(fraction[:18])
    return value


def format_duration(nanoseconds: int) -> str:
    """Write a duration as Go does."""
    sign, size = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if size == 0:
        return "0s"
    if size < _SECOND:
        for unit, name in ((10**6, "ms"), (10**3, "µs"), (1, "ns")):
            if size >= unit:
                return sign + _decimal(size, unit) + name
    minutes, rest = divmod(size, _MINUTE)
    text = f"{_decimal(rest, _SECOND)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = (f"{hours}h" if hours else "") + f"{minutes}m{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    fraction = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


@_add("ago", ANY)
def ago(value: Any) -> str:
    """Return how long ago a time was, to the second."""
    passed = (_now().at - _moment_of(value).at).total_seconds()
    return format_duration(int(passed + 0.5) * _SECOND)


@_add("duration", ANY, most=SLOWER)
def duration(value: Any) -> str:
    """Write seconds as a duration; they are an int64 or digits."""
    seconds = 0
    if isinstance(value, str):
        digits = value[1:] if value[:1] in ("+", "-") else value
        if digits.isascii() and digits.isdigit() and len(digits) < 20:  # noqa: PLR2004 - digits of an int64
            seconds = max(MIN_INT, min(MAX_INT, int(value)))
    elif isinstance(value, int) and not isinstance(value, bool | Int):
        seconds = int(value)
    nanoseconds = (seconds * _SECOND + (1 << 63)) % (1 << 64) - (1 << 63)
    return format_duration(nanoseconds)


@_add("durationRound", ANY, most=SLOWER)
def duration_round(value: Any) -> str:
    """Write a duration by its largest unit only."""
    nanoseconds = 0
    if isinstance(value, str):
        try:
            nanoseconds = parse_duration(value)
        except FunctionError:
            nanoseconds = 0
    elif isinstance(value, Time):
        nanoseconds = int((_now().at - value.moment.at) / timedelta(microseconds=1)) * 1000
    elif isinstance(value, int) and not isinstance(value, bool | Int):
        nanoseconds = int(value)
    size = abs(nanoseconds)
    for unit, name in (*_ROUNDED, (_SECOND, "s")):
        if size > unit:
            return f"{size // unit}{name}"
    return "0s"
