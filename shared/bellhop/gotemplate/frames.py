"""State of a running template, and the places that its errors name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from bellhop.gotemplate.errors import (
    DepthLimitError,
    ExecError,
    FunctionError,
    GoTemplateError,
    LimitError,
    Place,
    place_at,
)
from bellhop.gotemplate.literals import quote
from bellhop.gotemplate.values import ANY, NO_VALUE, Int, Opaque, StringMap, Struct, type_name

if TYPE_CHECKING:
    from bellhop.gotemplate.functions import FunctionSet
    from bellhop.gotemplate.limits import Budget
    from bellhop.gotemplate.nodes import Node

Evaluate = Callable[["Frame", Any], Any]
"""Computes a value from the frame and the cursor."""
Run = Callable[["Frame", Any], object]
"""Writes; answers None, or BREAK or CONTINUE."""
Code = tuple[Run, ...]

_LONGEST_MESSAGE = 4096

BREAK, CONTINUE = "break", "continue"


class Frame:
    """One execution of one body: its variables, where it writes, and what it may still use."""

    __slots__ = ("budget", "depth", "variables", "write")

    def __init__(
        self, write: Callable[[str], None], variables: list[Any], budget: Budget, depth: int
    ) -> None:
        self.write = write
        self.variables = variables
        self.budget = budget
        self.depth = depth


class Site:
    """The body a piece of code belongs to; turns failures into errors with a place."""

    __slots__ = ("body", "functions", "missing", "name", "text")

    def __init__(
        self, name: str, text: str, body: str, missing: str, functions: FunctionSet
    ) -> None:
        self.name = name
        self.text = text
        self.body = body
        self.missing = missing
        self.functions = functions

    def place(self, node: Node) -> Place:
        return place_at(self.name, self.text, node.position)

    def fail(self, node: Node, message: str) -> NoReturn:
        """Raise Go's error for what went wrong at a node."""
        place = self.place(node)
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}…"
        raise ExecError(
            f"template: {self.name}:{place.line}:{place.column}: "
            f"executing {quote(self.body)} at <{node}>: {message}",
            place,
        )

    def fail_call(self, node: Node, name: str, error: Exception) -> NoReturn:
        if isinstance(error, LimitError) and not error.line:
            error.place = self.place(node)
        if isinstance(error, GoTemplateError):
            raise error
        if isinstance(error, RecursionError):
            raise DepthLimitError("data nested too deeply", self.place(node)) from error
        if isinstance(error, FunctionError):
            message = str(error)
        else:
            message = str(error) or "it gives no reason"
        try:
            self.fail(node, f"error calling {name}: {message}")
        except ExecError as failure:
            raise failure from error


def follow(
    site: Site,
    node: Node,
    value: Any,
    names: tuple[str, ...],
    budget: Budget,
    *,
    element: bool,
) -> Any:
    """Follow a chain of fields step by step, with Go's complaint at the step that fails.

    `element` says that the value came out of a range or a map, where Go mostly knows no more than
    that it is an interface; numbers a range counted, and structs of a typed list, it does know.
    """
    element = element and not isinstance(value, Int | Struct)
    for name in names:
        if value is NO_VALUE:
            if site.missing == "error":
                site.fail(node, f"nil data; no entry for key {quote(name)}")
            return NO_VALUE
        if value is None:
            site.fail(node, f"nil pointer evaluating {ANY}.{name}")
        of_struct = isinstance(value, Struct)
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, dict) and not isinstance(value, Struct):
            value = _missing(site, node, value, name)
        elif isinstance(value, Opaque) and name in value.methods:
            value = _method(site, node, value, name, budget)
        else:
            kind = ANY if element else type_name(value)
            site.fail(node, f"can't evaluate field {name} in type {kind}")
        element = not of_struct
    return value


def _missing(site: Site, node: Node, value: dict[str, Any], name: str) -> Any:
    if site.missing == "error":
        site.fail(node, f"map has no entry for key {quote(name)}")
    if site.missing == "zero":
        return "" if isinstance(value, StringMap) else None
    return NO_VALUE


def _method(site: Site, node: Node, value: Opaque, name: str, budget: Budget) -> Any:
    method = value.methods[name]
    if method.parameters:
        expected = len(method.parameters)
        site.fail(node, f"wrong number of args for {name}: want {expected} got 0")
    try:
        return method.call(budget, value) if method.budgeted else method.call(value)
    except Exception as error:  # noqa: BLE001 - whatever a method raises is the template's error
        site.fail_call(node, name, error)
