"""How many files of the product one field of a kind touches.

A file is touched that has the field in its code: by the name that users write, also within texts,
or by a name of an attribute under which the value travels on. Docstrings and comments do not count.
"""

from __future__ import annotations

import ast
import re

from tests.house.source import Source, product

_IDENTIFIERS = ("id", "attr", "arg", "name")

FIELDS: dict[str, tuple[str, ...]] = {
    "stopMatchingBehavior": ("stop_matching_behavior", "leaves_policies"),
    "maxUpdate": ("max_update", "is_gradual"),
    "continueOnError": ("continue_on_error", "continues"),
    "continueOnConflict": ("continue_on_conflict",),
    "helmCharts[].options.atomic": ("atomic",),
}
"""Field to the names of its value in code. `continueOnConflict` is what a new boolean costs."""


def fields() -> dict[str, int]:
    """Count the files that each field touches."""
    return {
        f"files that {field} touches": sum(
            touches(file, field.rpartition(".")[2], names) for file in product()
        )
        for field, names in FIELDS.items()
    }


def unknown() -> list[str]:
    """Return the names of `FIELDS` that no code has: a rename is to be written there, too."""
    return [
        name
        for names in FIELDS.values()
        for name in names
        if not any(touches(file, name, (name,)) for file in product())
    ]


def touches(file: Source, written: str, names: tuple[str, ...]) -> bool:
    """Return whether code of a file has a field, by the name that users write or by others."""
    if not any(name in file.text for name in (written, *names)):
        return False
    prose, text = {id(each) for each in file.docstrings}, re.compile(rf"\b{written}\b")
    return any(
        bool(text.search(str(node.value))) and id(node) not in prose
        if isinstance(node, ast.Constant)
        else not {getattr(node, key, None) for key in _IDENTIFIERS}.isdisjoint((written, *names))
        for node in file.nodes
    )
