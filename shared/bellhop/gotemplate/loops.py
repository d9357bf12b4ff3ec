"""Loops of `range`, over lists, maps and counts, each metered by the budget of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.frames import BREAK, Frame, Site
from bellhop.gotemplate.values import (
    NO_VALUE,
    Struct,
    make_int,
    sorted_items,
    to_string,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bellhop.gotemplate import nodes
    from bellhop.gotemplate.frames import Code

MANY = 512
"""Elements from which a loop looks at the clock between them, not only at its budget of steps."""


class _Count:
    """The numbers before a number, each of that number's own type, made on demand."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __len__(self) -> int:
        return max(self.number, 0)

    def __iter__(self) -> Iterator[int]:
        return map(self.number.__class__, range(self.number))


def make_iterable(items: Any, variables: int, frame: Frame, site: Site, blamed: nodes.Node) -> Any:
    """Return what a range goes over: a list, a map, or a number's count."""
    if not items and (items is NO_VALUE or items is None):
        return ()
    if isinstance(items, bool | str | float | complex | Struct) or not isinstance(
        items, list | dict | int
    ):
        site.fail(blamed, f"range can't iterate over {to_string(items, frame.budget)}")
    if isinstance(items, int):
        if variables > 1:
            site.fail(blamed, f"can't use {write(items)} to iterate over more than one variable")
        return _Count(items)
    return items


def _pairs(items: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(items, dict):
        return sorted_items(items)
    return ((make_int(index), item) for index, item in enumerate(items))


def loop(frame: Frame, items: Any, slots: Sequence[int], body: Code) -> None:
    budget, variables = frame.budget, frame.variables
    budget.spend(len(items))
    if not slots:
        for _, item in budget.metered(_pairs(items)):
            for step in body:
                step(frame, item)
    elif len(slots) == 1:
        slot = slots[0]
        values = [item for _, item in sorted_items(items)] if isinstance(items, dict) else items
        for item in values if len(values) < MANY else budget.metered(values):
            variables[slot] = item
            for step in body:
                step(frame, item)
    else:
        first, second = slots
        pairs = _pairs(items)
        for key, item in pairs if len(items) < MANY else budget.metered(pairs):
            variables[first] = key
            variables[second] = item
            for step in body:
                step(frame, item)


def loop_with_jumps(frame: Frame, items: Any, slots: Sequence[int], body: Code) -> None:
    budget, variables = frame.budget, frame.variables
    budget.spend(len(items))
    for key, item in budget.metered(_pairs(items)):
        if len(slots) == 1:
            variables[slots[0]] = item
        elif slots:
            variables[slots[0]] = key
            variables[slots[1]] = item
        for step in body:
            signal = step(frame, item)
            if signal is not None:
                break
        else:
            continue
        if signal is BREAK:
            return
