"""A description in sections, printed as it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from bellhop.cli.output import STYLES, styled

_WIDTH = 18


class Story:
    """Prints facts and sections; between two objects stands an empty line."""

    def __init__(self) -> None:
        self._told = False

    def begin(self, kind: str, name: str) -> None:
        """Start telling of an object."""
        if self._told:
            click.echo()
        self._told = True
        click.echo(styled(f"{kind} {name}", "cyan", bold=True))

    def fact(self, name: str, value: str) -> None:
        """Tell one thing, if there is something to tell."""
        if value:
            click.echo(f"  {name + ':':<{_WIDTH}} {value}")

    def section(self, title: str, lines: Iterable[str], *, nothing: str = "none") -> None:
        """Tell several things under a title."""
        click.echo(f"  {title}:")
        empty = True
        for text in lines:
            empty = False
            click.echo("\n".join(f"    {part}" for part in text.splitlines() or [""]))
        if empty:
            click.echo(f"    {nothing}")

    def grid(self, title: str, rows: Iterable[Sequence[str]], *, nothing: str = "none") -> None:
        """Tell several things in columns under a title; the last column may be long."""
        lines = [tuple(row) for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        self.section(title, (_padded(row, widths) for row in lines), nothing=nothing)


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = [
        styled(cell, STYLES[cell]) + " " * (width - len(cell))
        if cell in STYLES
        else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return "   ".join(shown).rstrip()
