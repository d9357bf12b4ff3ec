"""The tests behind `is`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context

from bellhop.gotemplate import Budget
from bellhop.jinjabox.operations import compare
from bellhop.jinjabox.values import glance, number, string

TESTS: dict[str, Callable[..., Any]] = {}


def _compared(name: str) -> Callable[..., bool]:
    @pass_context
    def test(context: Context, value: Any, other: Any) -> bool:
        budget: Budget = context.environment.budget  # type: ignore[attr-defined]
        return compare(budget, value, name, other)

    return test


def _of_kind(*classes: type, but: tuple[type, ...] = ()) -> Callable[..., bool]:
    return _plain(lambda value: isinstance(value, classes) and not isinstance(value, but))


def _plain(test: Callable[..., Any]) -> Callable[..., bool]:
    @pass_context
    def paying(context: Context, value: Any, *arguments: Any) -> bool:
        budget: Budget = context.environment.budget  # type: ignore[attr-defined]
        budget.spend(1)
        glance(budget, value)
        return bool(test(value, *arguments))

    return paying


TESTS.update(
    {
        **{
            name: _compared(step)
            for names, step in {
                "eq == equalto": "eq",
                "ne !=": "ne",
                "lt < lessthan": "lt",
                "le <=": "lteq",
                "gt > greaterthan": "gt",
                "ge >=": "gteq",
                "in": "in",
            }.items()
            for name in names.split()
        },
        "boolean": _of_kind(bool),
        "defined": _plain(lambda value: not isinstance(value, Undefined)),
        "divisibleby": _plain(lambda value, by: number(value) % number(by) == 0),
        "even": _plain(lambda value: number(value) % 2 == 0),
        "false": _plain(lambda value: value is False),
        "float": _of_kind(float),
        "integer": _of_kind(int, but=(bool,)),
        "iterable": _of_kind(str, list, dict),
        "lower": _plain(lambda value: string(value).islower()),
        "mapping": _of_kind(dict),
        "none": _plain(lambda value: value is None),
        "number": _of_kind(int, float),
        "odd": _plain(lambda value: number(value) % 2 == 1),
        "sequence": _of_kind(str, list, dict),
        "string": _of_kind(str),
        "true": _plain(lambda value: value is True),
        "undefined": _plain(lambda value: isinstance(value, Undefined)),
        "upper": _plain(lambda value: string(value).isupper()),
    }
)
