"""JSON values: digests, equality, and how deep they are nested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_UNSTABLE = ("managedFields", "resourceVersion")


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def same(one: Any, other: Any) -> bool:
    """Say whether two JSON values are the same, whatever the order of their keys.

    `==` says so of 1, 1.0 and true, too, which are different values in a custom resource. Nothing
    recurs here, because senders nest as deep as they like.
    """
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if left.keys() != right.keys():
                return False
            pairs += ((each, right[key]) for key, each in left.items())
        elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif left != right or _number(left) != _number(right):
            return False
    return True


def _number(value: Any) -> tuple[bool, str]:
    return isinstance(value, bool), repr(value) if isinstance(value, float) else ""


def content(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that every write moves, so that equal means equal."""
    metadata = manifest.get("metadata") or {}
    stable = {key: value for key, value in metadata.items() if key not in _UNSTABLE}
    return {**manifest, "metadata": stable}


DEEPEST = 200
"""The most levels of lists and mappings that an object may have, whether sent or listed."""


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
