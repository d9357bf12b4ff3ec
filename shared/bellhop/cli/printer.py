"""The printers of commands: rows in a table, objects in sections, progress on a terminal.

It goes to standard error, so that the output of a command does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import click
from msgspec import Struct

from bellhop.cli import output
from bellhop.cli.options import TABLE, WIDE, headers_option, output_option, verbose_option
from bellhop.cli.output import STYLES, Column, Row, overwrite, print_styled, style, wrap
from bellhop.cli.selection import cluster_option
from bellhop.core.printable import visible

F = TypeVar("F", bound=Callable[..., Any])


class Printer(Struct, frozen=True):
    """Prints rows as a table, JSON or YAML; `verbose` is sveltosctl's word for a wide table."""

    form: str
    headers: bool = True
    verbose: bool = False

    @property
    def wide(self) -> bool:
        return self.verbose or self.form == WIDE

    def present(self, columns: Sequence[Column], rows: Iterable[Row], *, nothing: str) -> None:
        """Print rows, or `nothing` in place of an empty table."""
        form = WIDE if self.verbose and self.form == TABLE else self.form
        output.print_rows(columns, rows, form, nothing=nothing, headers=self.headers)


def printer_options(*, headers: bool = True, verbose: bool = False) -> Callable[[F], F]:
    """Add the options of a table, which a command gets as its parameter `printer`."""

    def decorate(command: F) -> F:
        @wraps(command)
        def call(*, form: str, headers: bool = True, verbose: bool = False, **others: Any) -> Any:
            return command(printer=Printer(form, headers, verbose), **others)

        options = output_option(cast("F", call))
        options = headers_option(options) if headers else options
        return verbose_option(options) if verbose else options

    return decorate


_LINE_OPTIONS = (
    click.option(
        "-f",
        "--follow",
        is_flag=True,
        help="Follow new lines. Ctrl-C ends it with exit code 0.",
    ),
    click.option(
        "--since",
        metavar="DURATION",
        help="How far back, as in 90s, 10m, 1h30m or 1d; by default 1h, with --follow from now.",
    ),
    click.option(
        "--trace",
        metavar="ID",
        default="",
        help="Only one event, by the first characters of its trace.",
    ),
    cluster_option,
    click.option(
        "--limit",
        metavar="LINES",
        type=click.IntRange(min=0),
        default=200,
        show_default=True,
        help="The number of last lines; 0 for all. Events among them are shown as a whole.",
    ),
    output_option,
)


def line_options(command: F) -> F:
    for option in reversed(_LINE_OPTIONS):
        command = option(command)
    return command


_WIDTH = 18
_CONTINUED = " " * 8
"""The indent of a line that continues a longer one."""


class Description:
    """A printer of fields and sections; an empty line separates two objects."""

    def __init__(self) -> None:
        self._begun = False

    def begin(self, kind: str, name: str) -> None:
        if self._begun:
            print_styled("")
        self._begun = True
        print_styled(style(f"{kind} {name}", "cyan", bold=True))

    def field(self, name: str, value: str) -> None:
        """Print a field, unless its value is empty."""
        if value:
            print_styled(wrap(f"  {name + ':':<{_WIDTH}} {visible(value)}", " " * (_WIDTH + 3)))

    def section(self, title: str, lines: Iterable[str], *, nothing: str = "none") -> None:
        parts = (map(visible, text.splitlines() or [""]) for text in lines)
        self._write(title, parts, nothing)

    def table(self, title: str, rows: Iterable[Sequence[str]], *, nothing: str = "none") -> None:
        """Print rows in columns under a title; the last column may be long."""
        lines = [tuple(map(visible, row)) for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        self._write(title, ([_pad(row, widths)] for row in lines), nothing)

    def _write(self, title: str, parts: Iterable[Iterable[str]], nothing: str) -> None:
        print_styled(f"  {title}:")
        empty = True
        for part in parts:
            empty = False
            print_styled("\n".join(wrap(f"    {text}", _CONTINUED) for text in part))
        if empty:
            print_styled(f"    {nothing}")


def _pad(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        style(cell, STYLES[cell]) + " " * (width - len(cell))
        if cell in STYLES
        else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return "   ".join(padded).rstrip()


_SELDOM = 100
"""Quick steps between two updates of the line."""


class Progress:
    """Shows progress while the block lasts."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.clear()

    def ask(self, name: str, number: int, total: int) -> None:
        """Show the cluster that is called now."""
        overwrite(f"asking {name} ({number} of {total}) …")

    def count(self, number: int, what: str) -> None:
        """Show a number now and then."""
        if number % _SELDOM == 1:
            overwrite(f"{number} {what} …")

    def wait(self, text: str) -> None:
        overwrite(f"{text} …")

    def clear(self) -> None:
        """Clear the line for output of the command."""
        overwrite("")
