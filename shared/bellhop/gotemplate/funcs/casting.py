"""How sprig reads any value as a number or as text: leniently, zero where nothing fits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.literals import MAX_INT, MIN_INT, parse_integer, to_text
from bellhop.gotemplate.values import Bytes, to_string, wrap

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

NIL_DEREFERENCE = "runtime error: invalid memory address or nil pointer dereference"


def to_int64(value: Any) -> int:
    """Read a value as Go's int64."""
    if isinstance(value, int):
        return wrap(int(value))
    if isinstance(value, float):
        if value != value or not MIN_INT <= value <= MAX_INT:  # noqa: PLR0124 - not a number
            return MIN_INT
        return int(value)
    if isinstance(value, str):
        return _parse(_without_zero_decimals(value))
    return 0


def _parse(text: str) -> int:
    number = parse_integer(text)
    return number if number is not None and MIN_INT <= number <= MAX_INT else 0


def _without_zero_decimals(text: str) -> str:
    whole, point, decimals = text.rpartition(".")
    return whole if point and decimals and not decimals.strip("0") else text


def to_float(value: Any) -> float:
    """Read a value as Go's float64."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            number = float(value) if value.strip() == value else 0.0
        except ValueError:
            return 0.0
        return number if not math.isinf(number) or "inf" in value.lower() else 0.0
    return 0.0


def to_text_of(value: Any, budget: Budget) -> str:
    """Write a value as sprig does, which is Go's %v but for bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, Bytes):
        return to_text(bytes(value))
    return to_string(value, budget)


def strings_of(value: Any, budget: Budget) -> list[str]:
    """Write a list's items, leaving nils out; anything else counts as a list of itself."""
    if isinstance(value, list):
        budget.spend(len(value))
        budget.take(sum(len(item) for item in value if isinstance(item, str)))
        return [to_text_of(item, budget) for item in value if item is not None]
    return [] if value is None else [to_text_of(value, budget)]


def out_of_range(start: int | None, end: int, length: int) -> NoReturn:
    """Fail as Go does when a slice expression leaves its string."""
    if end > length:
        raise FunctionError(
            f"runtime error: slice bounds out of range [:{end}] with length {length}"
        )
    raise FunctionError(f"runtime error: slice bounds out of range [{start or ''}:{end}]")
