"""The methods that values have in templates: all there are, since Python's are not reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellhop.engine.jinja.errors import RefusedError
from bellhop.engine.jinja.values import items_of, key, keys_of, paid, shown, string
from bellhop.gotemplate import Budget

Method = Callable[..., Any]


def replace(budget: Budget, text: str, old: Any, new: Any) -> str:
    """Replace one part of a text by another, everywhere."""
    old, new = string(old), shown(budget, new)
    count = text.count(old)
    budget.reserve(len(text) + count * (len(new) - len(old)))
    return paid(budget, text.replace(old, new))


def joined(budget: Budget, between: str, values: Any) -> str:
    """Join values into one text."""
    pieces = [shown(budget, each) for each in items_of(budget, values)]
    budget.reserve(sum(map(len, pieces)) + len(between) * len(pieces))
    return paid(budget, between.join(pieces))


def split(budget: Budget, text: str, separator: Any = None, times: int = -1) -> list[str]:
    """Split a text at a separator, or where blanks are."""
    if separator == "":
        raise RefusedError("an empty separator splits nothing")
    most = budget.steps if times < 0 else min(times, budget.steps)
    pieces = text.split(None if separator is None else string(separator), most)
    budget.spend(len(pieces))
    budget.charge(len(text))
    return pieces


def lines(budget: Budget, text: str) -> list[str]:
    """Split a text into its lines."""
    budget.spend(text.count("\n") + 1)
    budget.charge(len(text))
    pieces = text.split("\n")
    return pieces[:-1] if pieces[-1] == "" else pieces


def _simple(method: Callable[..., Any]) -> Method:
    """Take one of Python's methods whose result is about as long as its texts are."""

    def call(budget: Budget, text: str, *arguments: Any) -> Any:
        budget.spend(1)
        result = method(text, *(string(each) for each in arguments))
        return paid(budget, result) if isinstance(result, str) else result

    return call


_TEXT: dict[str, Method] = {
    **{
        method.__name__: _simple(method)
        for method in (
            str.capitalize,
            str.count,
            str.endswith,
            str.find,
            str.isalnum,
            str.isalpha,
            str.isdigit,
            str.islower,
            str.isupper,
            str.lower,
            str.lstrip,
            str.removeprefix,
            str.removesuffix,
            str.rstrip,
            str.startswith,
            str.strip,
            str.title,
            str.upper,
        )
    },
    "join": joined,
    "replace": replace,
    "split": split,
    "splitlines": lines,
}


def _get(_budget: Budget, value: dict[Any, Any], name: Any, otherwise: Any = None) -> Any:
    return value.get(key(name), otherwise)


def pairs(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    """Return key and value of each entry, by key."""
    budget.spend(len(value))
    return [[each, value[each]] for each in keys_of(value)]


def _values(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    return [each for _, each in pairs(budget, value)]


_MAPPING: dict[str, Method] = {
    "get": _get,
    "items": pairs,
    "keys": items_of,
    "values": _values,
}


def method_of(value: Any, name: str) -> Method | None:
    """Find a method of a value."""
    if isinstance(value, str):
        return _TEXT.get(name)
    return _MAPPING.get(name) if isinstance(value, dict) else None
