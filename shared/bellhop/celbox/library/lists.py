"""Lists: whether they are sorted, their sum, their ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from bellhop.celbox.library import Function


def _is_sorted(items: list[Any]) -> bool:
    return bool(_compared(lambda: all(not later < earlier for earlier, later in pairwise(items))))


def _sum(items: list[Any]) -> Any:
    kinds = {type(each) for each in items}
    if not kinds <= {int} and not kinds <= {float}:
        raise ValueError("sum() takes numbers of one kind")
    return sum(items)


def _end(pick: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def end(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name}() called on an empty list")
        found = _compared(lambda: pick(items))
        if isinstance(found, timedelta | datetime):
            # The runtime gives them to Python, and does not take them back.
            raise ValueError(f"the items of {name}() cannot be durations or times")  # noqa: TRY004
        return found

    return end


def _compared(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except TypeError:
        raise ValueError("the items of the list cannot be compared") from None


FUNCTIONS = (
    Function("isSorted", ("list",), "bool", _is_sorted),
    Function("sum", ("list",), "any", _sum),
    Function("min", ("list",), "any", _end(min, "min")),
    Function("max", ("list",), "any", _end(max, "max")),
)
