"""Go's date layouts: the reference time `Mon Jan 2 15:04:05 MST 2006` says what goes where."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.literals import quote

if TYPE_CHECKING:
    from collections.abc import Callable

MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905 - a word list
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905 - a word list
_NOON = 12

_TOKENS = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|-07:00:00|-070000|-07:00|-0700|-07"
    r"|Z07:00:00|Z070000|Z07:00|Z0700|Z07|002|__2|_2(?!006)|01|02|03|04|05|06|15|PM|pm"
    r"|[.,]0+(?![0-9])|[.,]9+(?![0-9])|1(?!5)|2(?!006)|3|4|5"
)


class Moment(NamedTuple):
    """A point in time with the name of its zone."""

    at: datetime
    zone: str


def _offset(moment: Moment) -> int:
    delta = moment.at.utcoffset() or timedelta()
    return int(delta.total_seconds())


def _zone(moment: Moment, token: str) -> str:
    seconds = _offset(moment)
    if token[0] == "Z" and not seconds:
        return "Z"
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, seconds = divmod(rest, 60)
    colon = ":" if ":" in token else ""
    text = f"{sign}{hours:02d}"
    if len(token) > len("-07"):
        text += f"{colon}{minutes:02d}"
    if len(token) > len("-07:00"):
        text += f"{colon}{seconds:02d}"
    return text


def _fraction(moment: Moment, token: str) -> str:
    digits = f"{moment.at.microsecond:06d}000"[: len(token) - 1]
    if token[1] == "9":
        digits = digits.rstrip("0")
        return token[0] + digits if digits else ""
    return token[0] + digits


_WRITERS: dict[str, Callable[[datetime], str]] = {
    "January": lambda at: MONTHS[at.month - 1],
    "Jan": lambda at: MONTHS[at.month - 1][:3],
    "Monday": lambda at: DAYS[at.weekday()],
    "Mon": lambda at: DAYS[at.weekday()][:3],
    "2006": lambda at: f"{at.year:04d}",
    "06": lambda at: f"{at.year % 100:02d}",
    "01": lambda at: f"{at.month:02d}",
    "1": lambda at: str(at.month),
    "02": lambda at: f"{at.day:02d}",
    "_2": lambda at: f"{at.day:2d}",
    "2": lambda at: str(at.day),
    "002": lambda at: f"{at.timetuple().tm_yday:03d}",
    "__2": lambda at: f"{at.timetuple().tm_yday:3d}",
    "15": lambda at: f"{at.hour:02d}",
    "03": lambda at: f"{at.hour % _NOON or _NOON:02d}",
    "3": lambda at: str(at.hour % _NOON or _NOON),
    "04": lambda at: f"{at.minute:02d}",
    "4": lambda at: str(at.minute),
    "05": lambda at: f"{at.second:02d}",
    "5": lambda at: str(at.second),
    "PM": lambda at: "PM" if at.hour >= _NOON else "AM",
    "pm": lambda at: "pm" if at.hour >= _NOON else "am",
}


def format_moment(moment: Moment, layout: str) -> str:
    """Write a moment by a layout."""

    def write(match: re.Match[str]) -> str:
        token = match[0]
        if token in _WRITERS:
            return _WRITERS[token](moment.at)
        if token == "MST":  # noqa: S105 - a zone, not a secret
            return moment.zone
        return _fraction(moment, token) if token[0] in ".," else _zone(moment, token)

    return _TOKENS.sub(write, layout)


# -- reading

_NUMBER = {
    "2006": ("year", r"[0-9]{4}"),
    "06": ("short_year", r"[0-9]{2}"),
    "01": ("month", r"[0-9]{2}"),
    "1": ("month", r"[0-9]{1,2}"),
    "02": ("day", r"[0-9]{2}"),
    "_2": ("day", r" ?[0-9]{1,2}"),
    "2": ("day", r"[0-9]{1,2}"),
    "002": ("yday", r"[0-9]{3}"),
    "__2": ("yday", r"[ 0-9]{2}[0-9]"),
    "15": ("hour", r"[0-9]{1,2}"),
    "03": ("hour12", r"[0-9]{2}"),
    "3": ("hour12", r"[0-9]{1,2}"),
    "04": ("minute", r"[0-9]{2}"),
    "4": ("minute", r"[0-9]{1,2}"),
    "05": ("second", r"[0-9]{2}"),
    "5": ("second", r"[0-9]{1,2}"),
}
_NAMES = {
    "January": ("month_name", "|".join(MONTHS)),
    "Jan": ("month_name", "|".join(name[:3] for name in MONTHS)),
    "Monday": ("weekday", "|".join(DAYS)),
    "Mon": ("weekday", "|".join(name[:3] for name in DAYS)),
    "PM": ("half", "AM|PM"),
    "pm": ("half", "am|pm"),
}
_SPAN = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
_SPAN["hour12"] = (0, 12)
_CENTURY_TURN = 69


def parse_moment(layout: str, text: str, local: tzinfo) -> Moment:
    """Read a moment by a layout.

    Raises:
        FunctionError: in Go's words.
    """
    found: dict[str, str] = {}
    position = rest = 0
    for match in _TOKENS.finditer(layout):
        position = _skip(layout, layout[rest : match.start()], text, position)
        rest = match.end()
        position = _read(layout, match[0], text, position, found)
    position = _skip(layout, layout[rest:], text, position)
    if position < len(text):
        reason = f": extra text: {quote(text[position:])}"
        raise FunctionError(f"parsing time {quote(text)}{reason}")
    return _moment(layout, text, found, local)


def _cannot(layout: str, text: str, position: int, expected: str) -> FunctionError:
    remaining = quote(text[position:])
    return FunctionError(
        f"parsing time {quote(text)} as {quote(layout)}: "
        f"cannot parse {remaining} as {quote(expected)}"
    )


def _skip(layout: str, literal: str, text: str, position: int) -> int:
    if literal.strip() == "" and literal:
        while text[position : position + 1] == " ":
            position += 1
        return position
    if not text.startswith(literal, position):
        raise _cannot(layout, text, position, literal)
    return position + len(literal)


def _read(layout: str, token: str, text: str, position: int, found: dict[str, str]) -> int:
    if token in _NUMBER:
        name, pattern = _NUMBER[token]
    elif token in _NAMES:
        name, pattern = _NAMES[token]
        pattern = f"(?i:{pattern})"
    elif token[0] in ".,":
        name, pattern = (
            "fraction",
            r"[.,][0-9]*" if token[1] == "9" else rf"[.,][0-9]{{{len(token) - 1}}}",
        )
        if token[1] == "9":
            pattern = f"(?:{pattern})?"
    elif token == "MST":  # noqa: S105 - a zone, not a secret
        name, pattern = "zone", r"[A-Z]{3,4}|[+-][0-9]{2}"
    else:
        name, pattern = "offset", _offset_pattern(token)
    match = re.compile(pattern).match(text, position)
    if match is None:
        raise _cannot(layout, text, position, token)
    found[name] = match[0]
    position = match.end()
    if name == "second" and "fraction" not in found:
        fraction = re.compile(r"[.,][0-9]+").match(text, position)
        following = layout[layout.find(token) + len(token) :][:2]
        if fraction is not None and not re.match(r"[.,][09]", following):
            found["fraction"] = fraction[0]
            position = fraction.end()
    return position


def _offset_pattern(token: str) -> str:
    colon = ":" if ":" in token else ""
    size = len(token.replace(":", "")) - 1
    pattern = "[+-][0-9]{2}" + f"{colon}[0-9]{{2}}" * (size // 2 - 1)
    return f"Z|{pattern}" if token[0] == "Z" else pattern


def _moment(layout: str, text: str, found: dict[str, str], local: tzinfo) -> Moment:
    numbers = {name: int(value) for name, value in found.items() if value.strip().isdigit()}
    for name, (low, high) in _SPAN.items():
        if name in numbers and not low <= numbers[name] <= high:
            plain = name.removesuffix("12")
            raise FunctionError(f"parsing time {quote(text)}: {plain} out of range")
    year = numbers.get("year", 0)
    if "short_year" in numbers:
        short = numbers["short_year"]
        year = short + (1900 if short >= _CENTURY_TURN else 2000)
    month = numbers.get("month", 1)
    if "month_name" in found:
        month = [name[:3].lower() for name in MONTHS].index(found["month_name"][:3].lower()) + 1
    hour = _hour(numbers, found.get("half", ""))
    fraction = (found.get("fraction", "")[1:] + "000000")[:6]
    zone, name = _found_zone(found, local)
    try:
        at = datetime(
            max(year, 1),
            month,
            numbers.get("day", 1),
            hour,
            numbers.get("minute", 0),
            numbers.get("second", 0),
            int(fraction),
            tzinfo=zone,
        )
    except ValueError as error:
        raise FunctionError(f"parsing time {quote(text)}: day out of range") from error
    if "yday" in numbers:
        at = at.replace(month=1, day=1) + timedelta(days=numbers["yday"] - 1)
    del layout
    return Moment(at, name or at.tzname() or "UTC")


def _hour(numbers: dict[str, int], half: str) -> int:
    if "hour12" not in numbers:
        return numbers.get("hour", 0)
    hour = numbers["hour12"]
    if half.lower() == "pm" and hour < _NOON:
        return hour + _NOON
    return 0 if half.lower() == "am" and hour == _NOON else hour


def _found_zone(found: dict[str, str], local: tzinfo) -> tuple[tzinfo, str]:
    offset = found.get("offset", "")
    if offset and offset != "Z":
        digits = offset[1:].replace(":", "").ljust(6, "0")
        seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
        delta = timedelta(seconds=-seconds if offset[0] == "-" else seconds)
        return timezone(delta), found.get("zone", offset_name(delta))
    zone = found.get("zone", "")
    if offset == "Z" or zone == "UTC":
        return UTC, "UTC"
    return (local, "") if not zone else (UTC, zone)


def offset_name(delta: timedelta) -> str:
    """Name a zone that has only an offset."""
    seconds = int(delta.total_seconds())
    if not seconds:
        return "UTC"
    sign = "-" if seconds < 0 else "+"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{sign}{hours:02d}{minutes:02d}"
