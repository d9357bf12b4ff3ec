"""Widths of the columns of a table, so that its rows fit on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bellhop.cli.output import Column

GAP = "   "
_NARROW = "  "
_LEAST = 5
"""Columns below which no cell is cut."""

_LEAST_SENTENCE, _LEAST_WORD = 22, 12


def fit(columns: Sequence[Column], widths: Sequence[int], room: int) -> tuple[str, list[int]]:
    """Return the gap and the widths with which rows of these widths fit.

    Sentences are narrowed first, then the gap, then cells down to their titles. Names stay whole,
    so that rows with very long ones do not fit.
    """
    gap, floors, spare = GAP, list(widths), 0
    for gap, floors in _steps(columns, widths):
        spare = room - len(gap) * (len(widths) - 1)
        if sum(floors) <= spare:
            break
    return gap, _narrowed(columns, widths, floors, spare)


def _steps(columns: Sequence[Column], widths: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Yield gaps and the least widths of columns, the most readable first."""
    every = list(zip(columns, widths, strict=True))
    whole = [min(wide, _LEAST_SENTENCE) if each.prose else wide for each, wide in every]
    titled = [
        wide if each.whole or each.prose else min(wide, max(len(each.title), _LEAST))
        for (each, _), wide in zip(every, whole, strict=True)
    ]
    least = [
        wide if each.whole else min(wide, _LEAST_WORD if each.prose else _LEAST)
        for each, wide in every
    ]
    yield from ((gap, whole) for gap in (GAP, _NARROW))
    yield from ((gap, titled) for gap in (GAP, _NARROW, " "))
    yield " ", least


def _narrowed(
    columns: Sequence[Column], widths: Sequence[int], floors: Sequence[int], spare: int
) -> list[int]:
    """Narrow the widest columns until a row fits; sentences get what is left."""
    every = list(zip(columns, widths, floors, strict=True))

    def limited(limit: int) -> list[int]:
        return [
            least if each.prose else max(least, min(wide, limit)) for each, wide, least in every
        ]

    limit = max(widths)
    while limit > _LEAST and sum(limited(limit)) > spare:
        limit -= 1
    fitted = limited(limit)
    for place, (each, wide, _) in enumerate(every):
        if each.prose:
            fitted[place] = min(wide, fitted[place] + max(spare - sum(fitted), 0))
    return fitted
