"""What commands print: tables for people, JSON and YAML for programs, colour for terminals only.

Columns stand apart by spaces alone, as kubectl's do, so that awk and cut can read them. Nothing is
cut off where the output is no terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

import click

from bellhop.cli.options import JSON, WIDE, YAML
from bellhop.model.visible import escaped_json, visible, visible_lines

Row = Mapping[str, Any]

_GAP = "   "
_BATCH = 500
"""Rows whose widths are looked at together; more are printed as they come."""

STYLES = {
    "Healthy": "green",
    "Provisioned": "green",
    "Provisioning": "yellow",
    "Removing": "yellow",
    "Silent": "yellow",
    "Unknown": "yellow",
    "Down": "red",
    "Failed": "red",
    "FailedNonRetriable": "red",
}


@dataclass(frozen=True)
class Column:
    """One column: its title, the key of the row that fills it, and how a value reads."""

    title: str
    key: str
    wide: bool = False
    shown: Callable[[Any], str] = str
    style: str = ""


def coloured() -> bool:
    """Say whether standard output is a terminal that wants colour."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )


def styled(text: str, colour: str, *, bold: bool = False) -> str:
    """Colour a text where colour is wanted; it is made `visible`."""
    text = visible(text)
    return click.style(text, fg=colour, bold=bold) if coloured() else text


def say(text: str, *, err: bool = False) -> None:
    """Print one line, whatever strangers put into it.

    All that commands print goes through this module: nothing of a stranger reaches a terminal
    but what can be seen.
    """
    click.echo(visible(text), err=err)


def compose(text: str) -> None:
    """Print a line that was put together of parts `styled` or made `visible`."""
    click.echo(text)


def raw(text: str) -> None:
    """Print a text as it is into a pipe or a file, and so that all is seen on a terminal."""
    click.echo(visible_lines(text) if sys.stdout.isatty() else text, nl=False)


def table(columns: Sequence[Column], rows: Iterable[Row], form: str, *, nothing: str) -> None:
    """Print rows as a table; say what is missing where there are none."""
    shown = [column for column in columns if form == WIDE or not column.wide]
    lines = ([_cell(column.shown(row[column.key])) for column in shown] for row in rows)
    first = next(lines, None)
    if first is None:
        click.echo(nothing, err=True)
        return
    if sys.stdout.isatty():
        _rich(shown, chain([first], lines))
    else:
        _plain([column.title for column in shown], chain([first], lines))


def objects(items: Iterable[Mapping[str, Any]], form: str, *, one: bool = False) -> None:
    """Print manifests as they come: one by itself, several as a v1 List."""
    if one:
        for item in items:
            click.echo(_json(item) if form == JSON else _yaml(item), nl=form == JSON)
        return
    if form == JSON:
        click.echo('{\n "apiVersion": "v1",\n "kind": "List",\n "items": [', nl=False)
        _separated(items)
        click.echo("]\n}")
        return
    click.echo("apiVersion: v1\nkind: List\nitems:", nl=False)
    before = "\n"
    for item in items:
        click.echo(before + _yaml([item]), nl=False)
        before = ""
    if before:
        click.echo(" []")


def records(rows: Iterable[Row], form: str) -> None:
    """Print rows as a list of objects."""
    if form == JSON:
        click.echo("[", nl=False)
        _separated(rows)
        click.echo("]")
        return
    empty = True
    for row in rows:
        empty = False
        click.echo(_yaml([dict(row)]), nl=False)
    if empty:
        click.echo("[]")


def present(columns: Sequence[Column], rows: Iterable[Row], form: str, *, nothing: str) -> None:
    """Print rows in the form asked for."""
    if form in {JSON, YAML}:
        records(rows, form)
    else:
        table(columns, rows, form, nothing=nothing)


def line(row: Mapping[str, Any]) -> str:
    """Write a row as one line of JSON."""
    return escaped_json(json.dumps(row, ensure_ascii=False, default=_plain_value))


def age(since: datetime | None, now: datetime) -> str:
    """Tell how long ago something was, in two letters' precision."""
    if since is None:
        return "never"
    seconds = max(int((now - since).total_seconds()), 0)
    for size, unit, limit in ((1, "s", 120), (60, "m", 120 * 60), (3600, "h", 48 * 3600)):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def stamp(at: datetime | None) -> str:
    """Write a time in UTC to the second."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def pairs(labels: Mapping[str, str]) -> str:
    """Write labels as users give them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def document(value: Any) -> None:
    """Print one value as JSON."""
    click.echo(_json(value))


def count(number: int, noun: str, several: str = "") -> str:
    """Say how many there are of something."""
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def _plain(titles: Sequence[str], lines: Iterator[Sequence[str]]) -> None:
    widths = [len(title) for title in titles]
    header: list[Sequence[str]] = [titles]
    while batch := header + list(islice(lines, _BATCH)):
        for cells in batch:
            widths = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
        click.echo("\n".join(_padded(cells, widths) for cells in batch))
        header = []


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(text: str) -> str:
    return visible(" ".join(text.splitlines()) if "\n" in text else text)


def _rich(columns: Sequence[Column], lines: Iterator[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold")
    for column in columns:
        shown.add_column(column.title, overflow="fold", style=column.style or None)
    for cells in lines:
        shown.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in cells))
    Console(no_color=not coloured(), highlight=False).print(shown)


def _separated(items: Iterable[Mapping[str, Any]]) -> None:
    between = ""
    for item in items:
        click.echo(f"{between}\n{_json(item)}", nl=False)
        between = ","
    click.echo("\n" if between else "", nl=False)


def _json(value: Any) -> str:
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=1, default=_plain_value))


def _yaml(value: Any) -> str:
    from bellhop.model.document import dump

    return dump(json.loads(json.dumps(value, default=_plain_value)))


def _plain_value(value: Any) -> Any:
    return stamp(value) if isinstance(value, datetime) else dict(value)
