"""A description in sections, printed as it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bellhop.cli.output import STYLES, compose, fold, styled
from bellhop.core.printable import visible

_WIDTH = 18
_BELOW = " " * 8
"""Before what a line that is too long goes on with."""


class Story:
    """Prints facts and sections; between two objects stands an empty line."""

    def __init__(self) -> None:
        self._told = False

    def begin(self, kind: str, name: str) -> None:
        """Start telling of an object."""
        if self._told:
            compose("")
        self._told = True
        compose(styled(f"{kind} {name}", "cyan", bold=True))

    def fact(self, name: str, value: str) -> None:
        """Tell one thing, if there is something to tell."""
        if value:
            compose(fold(f"  {name + ':':<{_WIDTH}} {visible(value)}", " " * (_WIDTH + 3)))

    def section(self, title: str, lines: Iterable[str], *, nothing: str = "none") -> None:
        """Tell several things under a title."""
        self._tell(title, (map(visible, text.splitlines() or [""]) for text in lines), nothing)

    def grid(self, title: str, rows: Iterable[Sequence[str]], *, nothing: str = "none") -> None:
        """Tell several things in columns under a title; the last column may be long."""
        lines = [tuple(map(visible, row)) for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        self._tell(title, ([_padded(row, widths)] for row in lines), nothing)

    def _tell(self, title: str, parts: Iterable[Iterable[str]], nothing: str) -> None:
        compose(f"  {title}:")
        empty = True
        for part in parts:
            empty = False
            compose("\n".join(fold(f"    {text}", _BELOW) for text in part))
        if empty:
            compose(f"    {nothing}")


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = [
        styled(cell, STYLES[cell]) + " " * (width - len(cell))
        if cell in STYLES
        else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return "   ".join(shown).rstrip()
