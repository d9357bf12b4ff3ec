"""A compiled rule as a tree, read from the bytes that CEL's runtime serializes it to.

They are a `cel.expr.CheckedExpr` in protobuf's wire format, of which little is needed: this is a
third of what a protobuf library's smallest part would be, and adds nothing to a package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Fields = dict[int, list[bytes]]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; `text` is that of a string, and None of a number, bool or null."""

    size: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field of something, or the question whether it is there."""

    operand: Node
    field: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator; what a method is called on is its first argument."""

    function: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A list or a map written out; of a map both keys and values are items."""

    items: tuple[Node, ...]
    is_list: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop that `all`, `exists`, `exists_one`, `map` and `filter` are expanded to."""

    names: tuple[str, ...]
    over: Node
    total: str
    start: Node
    condition: Node
    step: Node
    end: Node


Node = Constant | Name | Select | Call | Made | Loop


def tree(serialized: bytes) -> Node:
    """Return the tree of an expression, serialized as `google.protobuf.Any`."""
    checked = _fields(_fields(serialized)[2][0])
    return _node(checked[4][0])


# Numbers of fields of `cel.expr.Expr`, as its definition has them.
_LITERAL, _NAME, _SELECT, _CALL, _LIST, _MAP, _LOOP = range(3, 10)


def _node(data: bytes) -> Node:
    expression = _fields(data)
    if _LITERAL in expression:
        return _constant(expression[_LITERAL][0])
    if _NAME in expression:
        return Name(_text(_fields(expression[_NAME][0]), 1))
    if _SELECT in expression:
        select = _fields(expression[_SELECT][0])
        return Select(_node(select[1][0]), _text(select, 2))
    if _CALL in expression:
        call = _fields(expression[_CALL][0])
        args = [*call.get(1, []), *call.get(3, [])]
        return Call(_text(call, 2), tuple(map(_node, args)))
    if _LIST in expression:
        items = _fields(expression[_LIST][0]).get(1, [])
        return Made(tuple(map(_node, items)), is_list=True)
    if _MAP in expression:
        entries = map(_fields, _fields(expression[_MAP][0]).get(2, []))
        items = [each[part][0] for each in entries for part in (3, 4) if part in each]
        return Made(tuple(map(_node, items)), is_list=False)
    loop = _fields(expression[_LOOP][0])
    names = tuple(_text(loop, part) for part in (1, 8) if part in loop)
    over, start, condition, step, end = (_node(loop[part][0]) for part in (2, 4, 5, 6, 7))
    return Loop(names, over, _text(loop, 3), start, condition, step, end)


def _constant(data: bytes) -> Constant:
    fields = _fields(data)
    for text in (*fields.get(6, []), *fields.get(7, [])):
        return Constant(len(text), text.decode("utf-8", "replace"))
    return Constant(8)


def _text(fields: Fields, number: int) -> str:
    return fields[number][0].decode()


def _fields(data: bytes) -> Fields:
    found: Fields = {}
    for number, value in _wire(data):
        found.setdefault(number, []).append(value)
    return found


def _wire(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a message; of numbers only that they are there is of interest."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 2:  # noqa: PLR2004 - length-delimited.
            size, at = _varint(data, at)
        elif kind == 0:
            size = _varint(data, at)[1] - at
        else:
            size = 8 if kind == 1 else 4
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:  # noqa: PLR2004 - the last of a number has no mark.
            return value, at
        shift += 7
