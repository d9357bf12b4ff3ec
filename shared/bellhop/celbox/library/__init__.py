"""Kubernetes' own functions for CEL, which its C++ runtime lacks, in Python.

They are declared with types, so that a wrong use is refused when a rule is compiled. The runtime
takes no values of new types from Python: a quantity, URL, address, range of addresses or version
is a map with its normal form, so that `==` compares what is meant.

A function is a row of a table, with the types of what it takes; it says why it fails by a
ValueError, whose words users read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

Type = Literal["bool", "int", "double", "string", "list", "map", "any"]


class Function(NamedTuple):
    """One form of a function; a method's first parameter is what it is called on."""

    name: str
    takes: Sequence[Type]
    gives: Type
    does: Callable[..., Any]
    method: bool = True


def functions() -> list[Function]:
    """Return every function that is added to CEL."""
    from bellhop.celbox.library import (  # noqa: PLC0415 - they use this module
        addresses,
        lists,
        quantities,
        regexes,
        urls,
        versions,
    )

    parts = (addresses, lists, quantities, regexes, urls, versions)
    return [row for part in parts for row in part.FUNCTIONS]


def tested(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Make the function that returns whether a text can be parsed."""

    def is_one(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return is_one


def field(value: dict[str, Any], name: str, what: str) -> Any:
    """Return the normal form in a value that one of these functions made.

    Raises:
        ValueError: it is something else.
    """
    if set(value) != {name}:
        raise ValueError(f"this is not {what}")
    return value[name]
