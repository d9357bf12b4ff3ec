"""Labels as users give them on a command line."""

from __future__ import annotations

from collections.abc import Iterable

from bellhop.core.names import label_key_problem, label_value_problem
from bellhop.errors import InvalidError


def read_labels(text: str) -> dict[str, str]:
    """Read `env=prod,tier=gold`.

    Raises:
        InvalidError: one is no label.
    """
    return {
        key: value
        for key, value in read_changes(part for part in text.split(",") if part).items()
        if value is not None
    }


def read_changes(parts: Iterable[str], word: str = "label") -> dict[str, str | None]:
    """Read `env=prod` and `tier-`, which takes the label `tier` away.

    The values of all else than labels are any text; `word` is what errors call one.

    Raises:
        InvalidError: one is neither.
    """
    changes: dict[str, str | None] = {}
    for part in parts:
        key, equals, value = part.strip().partition("=")
        if not equals and not key.endswith("-"):
            raise InvalidError(
                f"cannot read the {word} '{part}': write key=value, or key- to remove it"
            )
        key = key if equals else key.removesuffix("-")
        problem = label_key_problem(key)
        if word == "label":
            problem = problem or label_value_problem(value)
        if problem:
            raise InvalidError(f"cannot read the {word} '{part}': {problem}")
        changes[key] = value if equals else None
    return changes
