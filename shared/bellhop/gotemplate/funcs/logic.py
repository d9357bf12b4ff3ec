"""Sprig's defaults, choices and questions about types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.values import ANY, Opaque, kind_name, type_name

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add


@_add("default", ANY, f"...{ANY}")
def default(fallback: Any, *given: Any) -> Any:
    """Return the fallback unless a value is given that is not empty."""
    return given[0] if given and given[0] else fallback


@_add("empty", ANY)
def empty(value: Any) -> bool:
    """Return whether a value is nil, zero, false, or without length."""
    return not value


@_add("coalesce", f"...{ANY}")
def coalesce(*values: Any) -> Any:
    """Return the first value that is not empty."""
    return next((value for value in values if value), None)


@_add("all", f"...{ANY}")
def all_(*values: Any) -> bool:
    """Return whether no value is empty."""
    return all(values)


@_add("any", f"...{ANY}")
def any_(*values: Any) -> bool:
    """Return whether one value is not empty."""
    return any(values)


@_add("ternary", ANY, ANY, "bool")
def ternary(if_true: Any, if_false: Any, condition: bool) -> Any:  # noqa: FBT001 - positional in templates
    return if_true if condition else if_false


@_add("fail", "string")
def fail(message: str) -> NoReturn:
    raise FunctionError(message)


@_add("env", "string")
def env(name: str) -> NoReturn:
    del name
    raise FunctionError("env is not available: templates cannot read the environment")


@_add("expandenv", "string")
def expandenv(text: str) -> NoReturn:
    del text
    raise FunctionError("expandenv is not available: templates cannot read the environment")


@_add("getHostByName", "string")
def get_host_by_name(name: str) -> NoReturn:
    del name
    raise FunctionError("getHostByName is not available: templates cannot use the network")


@_add("typeOf", ANY)
def type_of(value: Any) -> str:
    return type_name(value)


@_add("typeIs", "string", ANY)
def type_is(name: str, value: Any) -> bool:
    return type_name(value) == name


@_add("typeIsLike", "string", ANY)
def type_is_like(name: str, value: Any) -> bool:
    """Return whether a value's Go type has that name, or is a pointer to it."""
    return type_name(value) in (name, f"*{name}")


@_add("kindOf", ANY)
def kind_of(value: Any) -> str:
    return kind_name(value)


@_add("kindIs", "string", ANY)
def kind_is(name: str, value: Any) -> bool:
    return kind_name(value) == name


@_add("deepEqual", ANY, ANY, budgeted=True)
def deep_equal(budget: Budget, first: Any, second: Any) -> bool:
    """Return whether two values are equal in type and content, to the last leaf."""
    for value in (first, second):
        if isinstance(value, dict | list):
            budget.take(budget.walk(value))
    return same(first, second)


def same(first: Any, second: Any) -> bool:
    """Compare like Go's reflect.DeepEqual; the caller has paid for all items."""
    if type_name(first) != type_name(second):
        return False
    if isinstance(first, dict):
        if first.keys() != second.keys():
            return False
        return all(same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, Opaque):
        return bool(first.go_string() == second.go_string())
    return bool(first == second)


def identity(value: Any) -> Any:
    """Return what distinguishes a scalar among others, or None for what has parts."""
    if isinstance(value, dict | list | Opaque):
        return None
    return (type_name(value), value)
