"""How many things a reader of the product has to know: tables, records, messages, queues, loops.

- A table is a first word of a partition, by the page that lists all partitions.
- A record type is a struct that the store's items are read as: an argument of `decode`,
  or the first one of a table's base class, as in `class Watches(Table[Watch, str, str])`.
- A message is a class with a constant `do`; an inbox a key of `INBOXES`, besides that of charts.
- A retry loop repeats a function's work by `range`, and the function raises StaleError if other
  writers keep winning.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house import source

_PARTITIONS = re.compile(r"(?m)^\| Partition \|.*\n\|[-|]+\n((?:\|.*\n)+)")
_HEAD = re.compile(r"`([a-z]{2,})(?:/[^`]*)?`")
_READERS = {"decode"}
_BASES = {"Table", "SealedTable"}


def concepts() -> dict[str, int]:
    """Count each of them."""
    nodes = [node for each in source.product() for node in each.nodes]
    return {
        "tables": len(tables()),
        "record types": len(set(_record_types(nodes))),
        "messages": len(set(_messages(nodes))),
        "inboxes": len(set(_inboxes(nodes))),
        "retry loops": sum(1 for each in source.product() for _ in _retry_loops(each)),
    }


def tables() -> set[str]:
    """Return the first words of all partitions, by the page that lists them."""
    pages = sorted((source.ROOT / "docs").rglob("*.md"))
    rows = [
        row for page in pages for hit in _PARTITIONS.finditer(page.read_text()) for row in [hit[1]]
    ]
    cells = [line.split("|")[1] for row in rows for line in row.splitlines()]
    return {head for cell in cells for head in _HEAD.findall(cell)}


def _record_types(nodes: list[ast.AST]) -> Iterator[str]:
    structs = {node.name for node in nodes if isinstance(node, ast.ClassDef) and node.bases}
    for node in nodes:
        if isinstance(node, ast.Call) and _last_name(node.func) in _READERS:
            named = (each.id for each in node.args if isinstance(each, ast.Name))
            yield from (name for name in named if name in structs)
        elif isinstance(node, ast.Subscript) and _last_name(node.value) in _BASES:
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            yield from (name for name in [_last_name(first)] if name in structs)


def _messages(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "do":
                yield from _texts(each.value)


def _inboxes(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the keys of `INBOXES`, and the value of `CHARTS` beside it."""
    for node in nodes:
        if not isinstance(node, ast.Module):
            continue
        known = {
            ast.unparse(target): each.value
            for each in node.body
            if isinstance(each, ast.Assign | ast.AnnAssign)
            for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        }
        if isinstance(mapping := known.get("INBOXES"), ast.Dict):
            for each in (*mapping.keys, known.get("CHARTS")):
                yield from _texts(each)


def _texts(node: ast.expr | None) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _retry_loops(file: source.Source) -> Iterator[int]:
    loops: set[int] = set()
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef) and "StaleError" in _raised(node):
            inside = (each for each in ast.walk(node) if isinstance(each, ast.For))
            loops.update(each.lineno for each in inside if _is_retry(each))
    yield from loops


def _raised(function: ast.FunctionDef) -> set[str]:
    raised = (each.exc for each in ast.walk(function) if isinstance(each, ast.Raise))
    return {_last_name(each.func) for each in raised if isinstance(each, ast.Call)}


def _is_retry(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and _last_name(loop.iter.func) == "range"


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
