"""The operators of expressions, each paid for before it is done."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from bellhop.gotemplate import Budget
from bellhop.jinjabox.values import (
    RefusedError,
    contains,
    defined,
    equal,
    kind,
    less,
    number,
    paid,
    shown,
    whole,
)

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
OPERATORS = frozenset(_ARITHMETIC)
_LARGEST_POWER = 1024
_WIDEST = 1000
_CONVERSION = re.compile(
    r"%(?:\((?P<key>\w+)\))?[-#0 +]*(?P<sizes>[\d.*]*)(?P<letter>.?)", re.DOTALL
)
_COMPARISONS: dict[str, Callable[[Budget, Any, Any], bool]] = {
    "eq": equal,
    "ne": lambda budget, one, other: not equal(budget, one, other),
    "lt": less,
    "gt": lambda budget, one, other: less(budget, other, one),
    "lteq": lambda budget, one, other: not less(budget, other, one),
    "gteq": lambda budget, one, other: not less(budget, one, other),
    "in": lambda budget, one, other: contains(budget, other, one),
    "notin": lambda budget, one, other: not contains(budget, other, one),
}


def calculate(budget: Budget, sign: str, one: Any, other: Any) -> Any:
    """Apply an operator to two values."""
    budget.spend(1)
    texts = (isinstance(one, str), isinstance(other, str))
    if sign == "+" and all(texts):
        budget.reserve(len(one) + len(other))
        return paid(budget, one + other)
    if sign == "+" and isinstance(one, list) and isinstance(other, list):
        budget.spend(len(one) + len(other))
        return one + other
    if sign == "%" and texts[0]:
        return formatted(budget, one, other if isinstance(other, list) else [other])
    if sign == "*" and any(texts) and (isinstance(one, int) or isinstance(other, int)):
        text, times = (one, other) if texts[0] else (other, one)
        budget.reserve(len(text) * max(times, 0))
        return paid(budget, text * times)
    if not isinstance(defined(one), int | float) or not isinstance(defined(other), int | float):
        raise RefusedError(f"cannot use '{sign}' on {kind(one)} and {kind(other)}")
    if sign == "**" and abs(number(other)) > _LARGEST_POWER:
        raise RefusedError(f"a power beyond {_LARGEST_POWER}")
    try:
        return number(_ARITHMETIC[sign](number(one), number(other)))
    except ZeroDivisionError as error:
        raise RefusedError("division by zero") from error


def compare(budget: Budget, one: Any, *steps: Any) -> bool:
    """Apply a chain of comparisons: pairs of a comparison's name and a value."""
    for position in range(0, len(steps), 2):
        name, other = steps[position], steps[position + 1]
        if not _COMPARISONS[name](budget, defined(one), defined(other)):
            return False
        one = other
    return True


def cut(budget: Budget, value: Any, start: Any, stop: Any, step: Any) -> Any:
    """Return a part of a text or a list."""
    if not isinstance(defined(value), str | list):
        raise RefusedError(f"cannot cut a part out of {kind(value)}")
    bounds = [None if each is None else whole(each, 2**62) for each in (start, stop, step)]
    if bounds[2] == 0:
        raise RefusedError("the step of a part cannot be zero")
    budget.spend(1)
    part = value[slice(*bounds)]
    if isinstance(part, str):
        return paid(budget, part)
    budget.spend(len(part))
    return part


def formatted(budget: Budget, text: str, arguments: list[Any] | dict[str, Any]) -> str:
    """Format as printf does, without its widths that swell and its letters that look inside."""
    budget.spend(text.count("%") + 1)
    found = list(_CONVERSION.finditer(text))
    rest = iter(arguments if isinstance(arguments, list) else ())
    pieces: list[str] = []
    end = 0
    for conversion in found:
        pieces += [text[end : conversion.start()], _converted(budget, conversion, arguments, rest)]
        end = conversion.end()
    pieces.append(text[end:])
    if next(rest, None) is not None and found:
        raise RefusedError("not all arguments are used by the format")
    budget.reserve(sum(map(len, pieces)))
    return paid(budget, "".join(pieces))


def _converted(
    budget: Budget, conversion: re.Match[str], arguments: list[Any] | dict[str, Any], rest: Any
) -> str:
    letter = conversion["letter"]
    if letter == "%":
        return "%"
    sizes = [int(each) for each in conversion["sizes"].split(".") if each.isdigit()]
    if letter not in "sdifFeEgGxXo" or not letter or "*" in conversion["sizes"]:
        raise RefusedError(f"the format '%{letter}' is not known")
    if any(size > _WIDEST for size in sizes):
        raise RefusedError(f"a format wider than {_WIDEST}")
    if conversion["key"] is not None:
        value = arguments.get(conversion["key"]) if isinstance(arguments, dict) else None
    else:
        value = next(rest, None)
    if value is None:
        raise RefusedError("the format has more places than there are arguments")
    plain = conversion[0].replace(f"({conversion['key']})", "")
    given = shown(budget, value) if letter == "s" else number(value)
    return paid(budget, plain % (given,))
