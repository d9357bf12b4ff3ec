"""What was kept, for tests that do not ask for its token."""

from __future__ import annotations

from typing import TypeVar

from bellhop.state.table import Stored

T = TypeVar("T")


def value_of(kept: Stored[T] | None) -> T | None:
    """Return a record as it was read, or None where there is none."""
    return kept.value if kept else None


def require_value(kept: Stored[T] | None) -> T:
    """Return a record as it was read; it must be there."""
    assert kept is not None
    return kept.value
