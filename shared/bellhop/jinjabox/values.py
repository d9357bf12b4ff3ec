"""Values of a template: their types, their written form, and their comparison."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jinja2 import Undefined

from bellhop.gotemplate import Budget

_LARGE = 4096
_BITS = 256

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (int, "a number"),
    (float, "a number"),
    (str, "a string"),
    (dict, "a mapping"),
    (list, "a list"),
    (type(None), "nothing (null)"),
)


class RefusedError(Exception):
    """An operation cannot be done on what it was given; it names kinds of values, never values."""


class Bound:
    """A function or a method that a template may call; it is handed the budget first."""

    __slots__ = ("call", "name", "subject")

    def __init__(self, name: str, call: Callable[..., Any], *subject: Any) -> None:
        self.name = name
        self.call = call
        self.subject = subject


def kind(value: Any) -> str:
    """Name what a value is, for errors."""
    for cls, name in _KINDS:
        if isinstance(value, cls):
            return name
    return f"the function {value.name}" if isinstance(value, Bound) else "what is not data"


def defined(value: Any) -> Any:
    """Return a value, or fail as Jinja2 does when it is not there."""
    if isinstance(value, Undefined):
        value._fail_with_undefined_error()  # noqa: SLF001 - what every operation of Jinja2 calls
    return value


def paid(budget: Budget, text: str) -> str:
    """Return a text that was just built, paid for."""
    budget.hold(text)
    return text


def glance(budget: Budget, value: Any) -> None:
    """Look at the clock before a call that is given a long text."""
    if isinstance(value, str) and len(value) > _LARGE:
        budget.look()


def shown(budget: Budget, value: Any) -> str:
    """Write a value as it stands in the output: texts as they are, all else as JSON has it."""
    if value.__class__ is str:
        return str(value)
    defined(value)
    if value is None:
        raise RefusedError("there is nothing (null) to write; give it a default(…, true)")
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, dict | list):
        return dumped(budget, value)
    if isinstance(value, Bound):
        raise RefusedError(f"{value.name} is a function; call it: {value.name}()")
    raise RefusedError("this value cannot be written")


def dumped(budget: Budget, value: Any, indent: int | None = None) -> str:
    """Write JSON, with the keys in order."""
    if isinstance(defined(value), dict | list):
        budget.walk(value, indent or 0)
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        value,
        ensure_ascii=False,
        sort_keys=True,
        allow_nan=False,
        indent=indent,
        separators=separators,
        default=_refuse,
    )
    return paid(budget, text)


def _refuse(value: Any) -> Any:
    defined(value)
    raise RefusedError("a function or a macro has no JSON")


def measured(budget: Budget, value: Any) -> Any:
    """Return a value whose every part was paid for, however often it is shared."""
    if isinstance(defined(value), dict | list):
        budget.walk(value)
    return value


def items_of(budget: Budget, value: Any) -> list[Any]:
    """Return what a loop goes through: a list's items, or a mapping's keys in order."""
    if isinstance(defined(value), dict):
        budget.spend(len(value))
        return keys_of(value)
    if isinstance(value, tuple):
        value = list(value)
    if not isinstance(value, list):
        raise RefusedError(f"cannot go through {kind(value)}; it takes a list or a mapping")
    budget.spend(len(value))
    return value


def keys_of(value: dict[Any, Any]) -> list[Any]:
    """Return the keys of a mapping in order, so that one input gives one output."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=str)


def key(value: Any) -> Any:
    """Return a value that may be a key: a scalar."""
    if isinstance(value, str | int | float):
        return value
    defined(value)
    raise RefusedError(f"{kind(value)} cannot be a key")


def number(value: Any) -> Any:
    """Return a number that arithmetic may take."""
    if not isinstance(value, int | float):
        raise RefusedError(f"{kind(defined(value))} is not a number")
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise RefusedError(f"a number of more than {_BITS} bits")
    return value


def whole(value: Any, most: int) -> int:
    """Return an argument that is a whole number no larger than `most`, either way."""
    if not isinstance(defined(value), int):
        raise RefusedError(f"{kind(value)} where a whole number is expected")
    if abs(value) > most:
        raise RefusedError(f"the number {'is' if value > 0 else '(below zero) is'} beyond {most}")
    return int(value)


def string(value: Any) -> str:
    """Return a text, or say what is there instead."""
    if not isinstance(value, str):
        raise RefusedError(f"{kind(defined(value))} where a string is expected")
    return str(value)


def equal(budget: Budget, one: Any, other: Any) -> bool:
    """Compare by value, paying for each part that is looked at."""
    budget.spend(1)
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            each in other and equal(budget, value, other[each]) for each, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            equal(budget, *pair) for pair in zip(one, other, strict=True)
        )
    if isinstance(defined(one), dict | list) or isinstance(defined(other), dict | list):
        return False
    glance(budget, one)
    return bool(one == other)


def contains(budget: Budget, container: Any, value: Any) -> bool:
    """Return whether a text has a part, a list an item, or a mapping a key."""
    budget.spend(1)
    if isinstance(container, str):
        glance(budget, container)
        return string(value) in container
    if isinstance(container, dict):
        return key(value) in container
    return any(equal(budget, each, value) for each in items_of(budget, container))


def less(budget: Budget, one: Any, other: Any) -> bool:
    """Order two numbers or two texts."""
    budget.spend(1)
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if not numbers and not (isinstance(one, str) and isinstance(other, str)):
        raise RefusedError(f"cannot order {kind(defined(one))} and {kind(defined(other))}")
    glance(budget, one)
    return bool(one < other)
