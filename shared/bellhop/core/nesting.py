"""How deep JSON is nested: what recurses over a value asks for a bound first."""

from __future__ import annotations

from typing import Any

DEEPEST = 200
"""Levels of lists and mappings that are taken of an object, whoever sends or lists it."""


def exceeds_depth(value: Any, most: int) -> bool:
    """Return whether lists and mappings are nested deeper than `most` levels, without recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return bool(level)
