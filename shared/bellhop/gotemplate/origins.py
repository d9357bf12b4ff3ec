"""The template line of each line of output, by marks among the pieces written.

A mark is empty text, so a marked program writes what an unmarked one does. Only what asks for
origins is compiled with marks; they cost an ordinary render nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


class Mark(str):
    """Says that what is written next stands at a line; `literal` text goes on line by line."""

    __slots__ = ("line", "literal")

    line: int
    literal: bool

    def __new__(cls, line: int, *, literal: bool) -> Self:
        """Make an empty text that knows a line, counted from 1."""
        mark = super().__new__(cls)
        mark.line = line
        mark.literal = literal
        return mark


def lines_of(pieces: Iterable[str]) -> list[int]:
    """Return the template's line for each line that marked pieces make up.

    A line belongs to the first thing that stands in it, blanks apart.
    """
    lines: list[int] = [1]
    line, literal, settled = 1, False, False
    for piece in pieces:
        if isinstance(piece, Mark):
            line, literal = piece.line, piece.literal
            continue
        for number, part in enumerate(piece.split("\n")):
            if number:
                line += literal
                lines.append(line)
                settled = False
            if not settled and part:
                lines[-1] = line
                settled = not part.isspace()
    return lines
