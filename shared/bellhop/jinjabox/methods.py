"""The methods that values have in templates: all there are, since Python's are not reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellhop.gotemplate import Budget
from bellhop.gotemplate.limits import CUTTING
from bellhop.jinjabox.values import (
    RefusedError,
    glance,
    items_of,
    key,
    keys_of,
    paid,
    shown,
    string,
)

Method = Callable[..., Any]


def replace(budget: Budget, text: str, old: Any, new: Any) -> str:
    old, new = string(old), shown(budget, new)
    count = text.count(old)
    budget.reserve(len(text) + count * (len(new) - len(old)))
    return paid(budget, text.replace(old, new))


def joined(budget: Budget, between: str, values: Any) -> str:
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
    budget.spend(text.count("\n") + 1)
    budget.charge(len(text))
    pieces = text.split("\n")
    return pieces[:-1] if pieces[-1] == "" else pieces


def _stripping(method: Callable[..., str]) -> Callable[..., str]:
    """Take one of Python's methods that looks each character up among those to take off."""

    def call(budget: Budget, text: str, characters: Any = None) -> str:
        budget.spend(1)
        if characters is None:
            return paid(budget, method(text))
        budget.multiply(CUTTING, len(string(characters)), len(text))
        return paid(budget, method(text, string(characters)))

    return call


def cased(budget: Budget, method: Callable[[str], str], text: str) -> str:
    """Change the case of a text, one letter of which may become three."""
    if not text.isascii():
        budget.reserve(3 * len(text))
    return paid(budget, method(text))


strip = _stripping(str.strip)


def _simple(method: Callable[..., Any]) -> Method:
    """Take one of Python's methods whose result is about as long as its texts are."""

    def call(budget: Budget, text: str, *arguments: Any) -> Any:
        budget.spend(1)
        glance(budget, text)
        result = method(text, *(string(each) for each in arguments))
        return paid(budget, result) if isinstance(result, str) else result

    return call


def _casing(method: Callable[[str], str]) -> Method:
    return lambda budget, text: cased(budget, method, text)


_TEXT: dict[str, Method] = {
    **{
        method.__name__: _casing(method)
        for method in (str.capitalize, str.lower, str.title, str.upper)
    },
    **{
        method.__name__: _simple(method)
        for method in (
            str.count,
            str.endswith,
            str.find,
            str.isalnum,
            str.isalpha,
            str.isdigit,
            str.islower,
            str.isupper,
            str.removeprefix,
            str.removesuffix,
            str.startswith,
        )
    },
    "join": joined,
    "lstrip": _stripping(str.lstrip),
    "replace": replace,
    "rstrip": _stripping(str.rstrip),
    "strip": strip,
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
    if isinstance(value, str):
        return _TEXT.get(name)
    return _MAPPING.get(name) if isinstance(value, dict) else None
