"""Fields of an object that a rule reads: no others are converted and measured for it.

Converting an object to CEL's values costs more than most rules do, and most rules look at a few
of its fields. Where a rule takes `resource` as a whole, or looks up a key that it works out, all
of it is in reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bellhop.celbox.syntax import Call, Constant, Loop, Made, Name, Node, Select

ROOT = "resource"

Reach = dict[str, "Reach | None"]
"""The keys that are looked at, each with those within it; None is all of it."""


def reach(node: Node) -> Reach | None:
    """Return what of `resource` a rule looks at, or None where it is the whole of it."""
    found: Reach = {}
    for path in _paths(node):
        if not path:
            return None
        _add(found, path)
    return found


def within(obj: dict[str, Any], keys: Reach) -> dict[str, Any]:
    """Return an object with only the keys in reach."""
    found = {}
    for key, inner in keys.items():
        if key in obj:
            value = obj[key]
            found[key] = within(value, inner) if inner and isinstance(value, dict) else value
    return found


def _add(found: Reach, path: list[str]) -> None:
    *above, last = path
    for key in above:
        inner = found.setdefault(key, {})
        if inner is None:
            return
        found = inner
    found[last] = None


def _paths(node: Node) -> Iterator[list[str]]:
    """Yield each way from `resource` into it; a variable of a loop may hide it, which only adds."""
    path = _path(node)
    if path is not None:
        yield path
        return
    for part in _parts(node):
        yield from _paths(part)


def _path(node: Node) -> list[str] | None:
    match node:
        case Name(name):
            return [] if name == ROOT else None
        case Select(operand, field):
            above = _path(operand)
            return None if above is None else [*above, field]
        case Call("_[_]", (operand, Constant(_, str(key)))):
            above = _path(operand)
            return None if above is None else [*above, key]
    return None


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Select(operand, _):
            return (operand,)
        case Call(_, args):
            return args
        case Made(items, _):
            return items
        case Loop(_, over, _, start, condition, step, end):
            return (over, start, condition, step, end)
    return ()
