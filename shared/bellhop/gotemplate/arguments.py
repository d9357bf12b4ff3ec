"""Arguments held to the parameter's Go type, as far as that can be done while compiling.

A literal takes the type of its parameter; any other value must have it already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from bellhop.gotemplate import nodes
from bellhop.gotemplate.functions import VALUE
from bellhop.gotemplate.values import (
    ANY,
    NO_VALUE,
    DictList,
    Int,
    IntList,
    StringList,
    StringMap,
    make_int,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from bellhop.gotemplate.frames import Evaluate, Frame, Site
    from bellhop.gotemplate.literals import Number
    from bellhop.gotemplate.nodes import Node

_CLASSES: dict[str, type] = {
    "string": str,
    "bool": bool,
    "int": Int,
    "int64": int,
    "float64": float,
    "map[string]interface {}": dict,
    "map[string]string": StringMap,
    "[]interface {}": list,
    "[]string": StringList,
    "[]int": IntList,
    "[]map[string]interface {}": DictList,
}
_EMPTY: dict[str, Callable[[], Any]] = {
    name: _CLASSES[name]
    for name in (
        "map[string]interface {}",
        "map[string]string",
        "[]interface {}",
        "[]string",
        "[]int",
        "[]map[string]interface {}",
    )
}
_EXPECTED = {
    "string": "string",
    "bool": "bool",
    "int": "integer",
    "int64": "integer",
    "uint32": "unsigned integer",
    "float64": "float",
}
_UINT32 = (1 << 32) - 1
LITERALS = (nodes.Bool, nodes.NumberConstant, nodes.String)


def constant(value: Any) -> Evaluate:
    """Return code that gives a value known beforehand."""

    def evaluate(frame: Frame, dot: Any) -> Any:
        del frame, dot
        return value

    return evaluate


def failing(site: Site, node: Node, message: str) -> Evaluate:
    """Return code that fails when, and only when, it is reached, as Go does."""

    def evaluate(frame: Frame, dot: Any) -> NoReturn:
        del frame, dot
        site.fail(node, message)

    return evaluate


def ideal(site: Site, node: nodes.NumberConstant) -> Evaluate:
    """Return a number of the type its spelling asks for."""
    number = node.number
    if number.imaginary is not None:
        return constant(number.imaginary)
    literal = node.literal
    hexadecimal = literal[:2] in ("0x", "0X") and not any(c in literal for c in "pP")
    if (
        number.floating is not None
        and not hexadecimal
        and literal[0] != "'"
        and any(c in literal for c in ".eEpP")
    ):
        return constant(number.floating)
    if number.integer is not None:
        return constant(make_int(number.integer))
    if number.unsigned is not None:
        return failing(site, node, f"{literal} overflows int")
    return constant(NO_VALUE)


def literal_of(site: Site, node: Node) -> Evaluate:
    """Return a literal's value where any type will do."""
    if isinstance(node, nodes.NumberConstant):
        return ideal(site, node)
    if isinstance(node, nodes.Bool | nodes.String):
        return constant(node.value)
    return failing(site, node, f"can't handle {node}")


def literal_as(site: Site, node: Node, expected: str) -> Evaluate:
    """Return a literal's value as a parameter's type, or code that complains."""
    if expected in (ANY, VALUE):
        return literal_of(site, node)
    if expected == "string" and isinstance(node, nodes.String):
        return constant(node.value)
    if expected == "bool" and isinstance(node, nodes.Bool):
        return constant(node.value)
    value = _number_as(node.number, expected) if isinstance(node, nodes.NumberConstant) else None
    if value is not None:
        return constant(value)
    if expected in _EXPECTED:
        return failing(site, node, f"expected {_EXPECTED[expected]}; found {node}")
    return failing(site, node, f"can't handle {node} for arg of type {expected}")


def _number_as(number: Number, expected: str) -> int | float | None:
    """Return a constant as a numeric type, or None where it does not fit."""
    if expected == "int":
        return None if number.integer is None else Int(number.integer)
    if expected == "int64":
        return number.integer
    if expected == "uint32":
        return None if number.unsigned is None else number.unsigned & _UINT32
    return number.floating if expected == "float64" else None


def nil_as(site: Site, node: Node, expected: str) -> Evaluate:
    """Return what nil is for a parameter's type."""
    if expected == VALUE:
        return constant(NO_VALUE)
    if expected == ANY:
        return constant(None)
    if expected in _EMPTY:
        empty = _EMPTY[expected]
        return lambda frame, dot: empty()  # noqa: ARG005 - the shape of all code
    return failing(site, node, f"cannot assign nil to {expected}")


def checked(site: Site, node: Node, evaluate: Evaluate, expected: str) -> Evaluate:
    """Hold a value to a parameter's type; Go's error names `node`."""
    if expected == VALUE:
        return evaluate
    if expected == ANY:

        def anything(frame: Frame, dot: Any) -> Any:
            value = evaluate(frame, dot)
            return None if value is NO_VALUE else value

        return anything
    cls = _CLASSES.get(expected)

    def typed(frame: Frame, dot: Any) -> Any:
        value = evaluate(frame, dot)
        if value.__class__ is cls:
            return value
        return convert(site, node, value, expected)

    return typed


def convert(site: Site, node: Node, value: Any, expected: str) -> Any:
    """Accept what only looks different to Python, or complain as Go does."""
    if value is NO_VALUE:
        if expected in _EMPTY:
            return _EMPTY[expected]()
        site.fail(node, f"invalid value; expected {expected}")
    given = ANY if value is None else type_name(value)
    if given != expected:
        site.fail(node, f"wrong type for value; expected {expected}; got {given}")
    return value
