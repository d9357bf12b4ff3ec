"""Semantic versions, and the order of them and of quantities."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bellhop.celbox.library import Function, field, quantities, tested

_NUMBER = r"(0|[1-9]\d{0,17})"
_WORD = r"(?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*)"
_FORM = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_WORD}(?:\.{_WORD})*))?(?:\+([0-9A-Za-z.-]+))?"
)
_LONGEST = 256


def _semver(text: str) -> dict[str, str]:
    if len(text) > _LONGEST or not _FORM.fullmatch(text):
        raise ValueError("this is not a semantic version")
    return {"semver": text}


def _parts(value: dict[str, Any]) -> tuple[str, ...]:
    found = _FORM.fullmatch(str(field(value, "semver", "a semantic version")))
    if not found:
        raise ValueError("this is not a semantic version")
    return found.groups(default="")


def _number(index: int) -> Callable[[dict[str, Any]], int]:
    return lambda value: int(_parts(value)[index])


def _rank(value: dict[str, Any]) -> tuple[Any, ...]:
    """Return what orders versions: one with a pre-release comes before the one without."""
    *numbers, words, _ = _parts(value)
    ranked = [(0, int(word), "") if word.isdecimal() else (1, 0, word) for word in words.split(".")]
    return (*map(int, numbers), not words, ranked)


def _compare(one: dict[str, Any], other: dict[str, Any]) -> int:
    if "quantity" in one:
        return quantities.compare(one, other)
    first, second = _rank(one), _rank(other)
    return (first > second) - (first < second)


FUNCTIONS = (
    Function("semver", ("string",), "map", _semver, method=False),
    Function("isSemver", ("string",), "bool", tested(_semver), method=False),
    Function("major", ("map",), "int", _number(0)),
    Function("minor", ("map",), "int", _number(1)),
    Function("patch", ("map",), "int", _number(2)),
    # Of quantities too: the runtime distinguishes them from versions only by their contents.
    Function("isGreaterThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) > 0),
    Function("isLessThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) < 0),
    Function("compareTo", ("map", "map"), "int", _compare),
)
