"""Values of labels and annotations that a user did not ask to replace, as kubectl protects them."""

from __future__ import annotations

from collections.abc import Mapping

from bellhop.errors import ConflictError


def refuse_overwrite(
    action: str, there: Mapping[str, str], changes: Mapping[str, str | None]
) -> None:
    """Refuse changes that give a key another value than it has; `action` begins the sentence.

    Raises:
        ConflictError: naming the first such key with its value.
    """
    for key, value in changes.items():
        if value is not None and there.get(key, value) != value:
            raise ConflictError(
                f"cannot {action}: '{key}' already has the value '{there[key]}'; replace it with"
                " --overwrite"
            )
