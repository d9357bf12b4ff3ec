"""Quantities: `500m`, `1.5Gi`, `3e2`, compared by what they are worth."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from bellhop.celbox.library import Function, field, tested

_FORM = re.compile(
    r"([+-]?(?:\d{1,64}\.?\d{0,64}|\.\d{1,64}))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {each: index for index, each in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_MOST = 2**63 - 1


def _quantity(text: str) -> dict[str, str]:
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError("quantities must match the form 500m, 1.5Gi or 3e2")
    number, suffix, exponent = found.groups()
    if suffix in _BINARY:
        worth = Fraction(number) * 1024 ** _BINARY[suffix]
    else:
        worth = Fraction(number) * Fraction(10) ** int(exponent or _DECIMAL.get(suffix, 0))
    return _form(worth)


def _form(worth: Fraction) -> dict[str, str]:
    return {"quantity": f"{worth.numerator}/{worth.denominator}"}


def _worth(value: dict[str, Any] | int) -> Fraction:
    if isinstance(value, int):
        return Fraction(value)
    return Fraction(str(field(value, "quantity", "a quantity")))


def _integer(value: dict[str, Any]) -> int:
    worth = _worth(value)
    if worth.denominator != 1 or abs(worth) > _MOST:
        raise ValueError("the quantity cannot be represented as an integer")
    return worth.numerator


def _is_integer(value: dict[str, Any]) -> bool:
    worth = _worth(value)
    return worth.denominator == 1 and abs(worth) <= _MOST


def _sign(worth: Fraction) -> int:
    return (worth > 0) - (worth < 0)


def _with(does: Callable[[Fraction, Fraction], Any]) -> Callable[..., Any]:
    return lambda one, other: does(_worth(one), _worth(other))


_ADD = _with(lambda one, other: _form(one + other))
_SUB = _with(lambda one, other: _form(one - other))

FUNCTIONS = (
    Function("quantity", ("string",), "map", _quantity, method=False),
    Function("isQuantity", ("string",), "bool", tested(_quantity), method=False),
    Function("sign", ("map",), "int", lambda value: _sign(_worth(value))),
    Function("isInteger", ("map",), "bool", _is_integer),
    Function("asInteger", ("map",), "int", _integer),
    Function("asApproximateFloat", ("map",), "double", lambda value: float(_worth(value))),
    Function("add", ("map", "map"), "map", _ADD),
    Function("add", ("map", "int"), "map", _ADD),
    Function("sub", ("map", "map"), "map", _SUB),
    Function("sub", ("map", "int"), "map", _SUB),
)


def compare(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Return -1, 0 or 1, as the first quantity is less than the second, equal or greater."""
    return _sign(_worth(one) - _worth(other))
