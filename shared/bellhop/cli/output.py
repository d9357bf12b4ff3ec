"""What commands print: tables for people, JSON and YAML for programs, colour for terminals only.

Columns stand apart by spaces alone, as kubectl's do, so that awk and cut can read them. Nothing is
cut off where the output is no terminal; on one, cells are cut and sentences parted between words.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice, zip_longest
from typing import Any

import click
from msgspec import Struct

from bellhop.cli.layout import GAP, fit
from bellhop.cli.options import JSON, WIDE, YAML
from bellhop.core.printable import escaped_json, visible, visible_lines

Row = Mapping[str, Any]

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_WHOLE = {"CLUSTER", "NAME", "RELEASE NAME", "RESOURCE NAME", "SINCE", "CHANGE"}
_BATCH = 500
"""Rows whose widths are looked at together; more are printed as they come."""

STYLES = {
    "Healthy": "green",
    "Provisioned": "green",
    "Provisioning": "yellow",
    "DryRun": "yellow",
    "Removing": "yellow",
    "Silent": "yellow",
    "Unknown": "yellow",
    "Unauthorized": "red",
    "Down": "red",
    "Failed": "red",
    "FailedNonRetriable": "red",
}


class Column(Struct, frozen=True):
    """One column: its title, the key of the row that fills it, and how a value reads."""

    title: str
    key: str
    wide: bool = False
    shown: Callable[[Any], str] = str
    style: str = ""
    prose: bool = False
    """A sentence or a list: it goes on in the next line where there is no room for it."""

    @property
    def whole(self) -> bool:
        """Return whether its cells are never cut: names, which other commands take, and times."""
        return self.title in _WHOLE


def coloured() -> bool:
    """Say whether standard output is a terminal that wants colour."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )


def width() -> int:
    """Return how many columns the terminal has; 0 where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def span(text: str) -> int:
    """Return how many columns a text takes on a terminal, escapes of colours aside."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    plain = _ESCAPE.sub("", text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in plain)
    return len(plain) + wide - sum(unicodedata.combining(each) > 0 for each in plain)


def fold(text: str, indent: str = "") -> str:
    """Part a line between its words where a terminal is too narrow; no name is ever parted."""
    room = width()
    if not room or span(text) <= room:
        return text
    before = text[: len(text) - len(text.lstrip())]
    first, *rest = _parted(text.lstrip(), room - max(len(before), len(indent)))
    return "\n".join([before + first, *(indent + each for each in rest)])


def styled(text: str, colour: str, *, bold: bool = False) -> str:
    """Colour a text where colour is wanted; it is made `visible`."""
    text = visible(text)
    return click.style(text, fg=colour, bold=bold) if coloured() else text


def say(*lines: str, err: bool = False) -> None:
    """Print lines at once, whatever strangers put into them.

    All that commands print goes through this module: nothing of a stranger reaches a terminal
    but what can be seen.
    """
    click.echo("\n".join(map(visible, lines)), err=err)


def compose(text: str) -> None:
    """Print a line that was put together of parts `styled` or made `visible`."""
    click.echo(text)


def overwrite(text: str) -> None:
    """Have a line of standard error say something else; where that is no terminal say nothing.

    A line that is longer than the terminal is cut: nobody could write over it.
    """
    if sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb":
        room = max(shutil.get_terminal_size().columns - 1, 0)
        click.echo(f"\r\x1b[K{visible(text)[:room]}", nl=False, err=True)


def flush() -> None:
    """Have what was printed read now."""
    sys.stdout.flush()


def raw(text: str) -> None:
    """Print a text as it is into a pipe or a file, and so that all is seen on a terminal."""
    click.echo(visible_lines(text) if sys.stdout.isatty() else text, nl=False)


def table(
    columns: Sequence[Column],
    rows: Iterable[Row],
    form: str,
    *,
    nothing: str,
    headers: bool = True,
) -> None:
    """Print rows as a table; say what is missing where there are none.

    On a terminal cells are cut so that a row is a line, but for `wide`, which has all.
    """
    shown = [column for column in columns if form == WIDE or not column.wide]
    lines = ([_cell(column.shown(row[column.key])) for column in shown] for row in rows)
    first = next(lines, None)
    if first is None:
        click.echo(nothing, err=True)
        return
    room = 0 if form == WIDE else width()
    _print(shown, chain([first], lines), room, headers=headers)


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


def present(
    columns: Sequence[Column],
    rows: Iterable[Row],
    form: str,
    *,
    nothing: str,
    headers: bool = True,
) -> None:
    """Print rows in the form asked for."""
    if form in {JSON, YAML}:
        records(rows, form)
    else:
        table(columns, rows, form, nothing=nothing, headers=headers)


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


def age_now(since: datetime) -> str:
    """Tell how long ago something was by the clock of this machine."""
    return age(since, datetime.now(UTC))


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


def _print(
    columns: Sequence[Column], lines: Iterator[Sequence[str]], room: int, *, headers: bool
) -> None:
    widths = [span(column.title) if headers else 0 for column in columns]
    ahead = [[column.title for column in columns]] if headers else []
    titled = headers
    while batch := [*ahead, *islice(lines, _BATCH)]:
        for cells in batch:
            widths = [max(wide, span(cell)) for wide, cell in zip(widths, cells, strict=True)]
        gap, fitted = fit(columns, widths, room) if room else (GAP, widths)
        for cells in batch:
            for parts in _row(columns, cells, fitted, cut=bool(room), title=titled):
                click.echo(gap.join(parts).rstrip())
            titled = False
        ahead = []


def _row(
    columns: Sequence[Column],
    cells: Sequence[str],
    widths: Sequence[int],
    *,
    cut: bool,
    title: bool,
) -> Iterator[Iterator[str]]:
    """Yield the lines of one row: one, unless a sentence goes on below in its column."""
    lines = [[cell] for cell in cells]
    if cut:
        lines = [_lines(*each) for each in zip(columns, cells, widths, strict=True)]
        # A long word of the last column is whole, as it stands before nothing.
        lines[-1] = _parted(cells[-1], widths[-1]) if columns[-1].prose else lines[-1]
    for line in zip_longest(*lines, fillvalue=""):
        parts = zip(columns, line, widths, strict=True)
        yield (_padded(*part, title=title) for part in parts)


def _lines(column: Column, cell: str, wide: int) -> list[str]:
    return [_cut(each, wide) for each in (_parted(cell, wide) if column.prose else [cell])]


def _padded(column: Column, cell: str, wide: int, *, title: bool) -> str:
    padding = " " * (wide - span(cell))
    style = STYLES.get(cell, column.style)
    if not cell or not coloured() or not (title or style):
        return cell + padding
    return click.style(cell, bold=True) + padding if title else click.style(cell, style) + padding


def _cut(cell: str, wide: int) -> str:
    if span(cell) <= wide:
        return cell
    while span(cell) >= wide:
        cell = cell[:-1]
    return f"{cell}…"


def _parted(text: str, wide: int) -> list[str]:
    """Part a text between its words; a word that is longer has a line for itself."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and span(lines[-1]) + 1 + span(word) <= wide:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _cell(text: str) -> str:
    return visible(" ".join(text.splitlines()) if "\n" in text else text)


def _separated(items: Iterable[Mapping[str, Any]]) -> None:
    between = ""
    for item in items:
        click.echo(f"{between}\n{_json(item)}", nl=False)
        between = ","
    click.echo("\n" if between else "", nl=False)


def _json(value: Any) -> str:
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=1, default=_plain_value))


def _yaml(value: Any) -> str:
    from bellhop.documents.document import dump

    return dump(json.loads(json.dumps(value, default=_plain_value)))


def _plain_value(value: Any) -> Any:
    return stamp(value) if isinstance(value, datetime) else dict(value)
