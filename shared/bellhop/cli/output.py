"""Output of commands: tables for people, JSON and YAML for programs, colour on terminals.

Spaces separate columns, as in kubectl, so that awk and cut can read them. Nothing is cut if the
output is no terminal; on one, cells are cut and sentences wrap between words.
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

from bellhop.cli.options import JSON, WIDE, YAML
from bellhop.core.printable import escaped_json, visible, visible_lines

GAP = "   "
_NARROW = "  "
_LEAST = 5
"""Columns below which no cell is cut."""

_LEAST_SENTENCE, _LEAST_WORD = 22, 12


def fit(columns: Sequence[Column], widths: Sequence[int], space: int) -> tuple[str, list[int]]:
    """Return the gap and the widths with which rows of these widths fit.

    Sentences are narrowed first, then the gap, then cells down to their titles. Names stay whole,
    so rows with very long names do not fit.
    """
    gap, floors, spare = GAP, list(widths), 0
    for gap, floors in _list_steps(columns, widths):
        spare = space - len(gap) * (len(widths) - 1)
        if sum(floors) <= spare:
            break
    return gap, _narrow(columns, widths, floors, spare)


def _list_steps(
    columns: Sequence[Column], widths: Sequence[int]
) -> Iterator[tuple[str, list[int]]]:
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


def _narrow(
    columns: Sequence[Column], widths: Sequence[int], floors: Sequence[int], spare: int
) -> list[int]:
    """Narrow the widest columns until a row fits; sentences get the rest."""
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


Row = Mapping[str, Any]

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_WHOLE = {"CLUSTER", "NAME", "RELEASE NAME", "RESOURCE NAME", "SINCE", "CHANGE"}
_BATCH = 500
"""Rows whose widths are computed together; more are printed as they come."""

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
    """A sentence or a list, which continues in the next line if it does not fit."""

    @property
    def whole(self) -> bool:
        """Return whether its cells are never cut: names, which other commands read, and times."""
        return self.title in _WHOLE


def has_colour() -> bool:
    """Return whether standard output is a terminal with colours."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )


def terminal_width() -> int:
    """Return the columns of the terminal; 0 if standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def text_width(text: str) -> int:
    """Return the columns of a text on a terminal, without the escapes of colours."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    plain = _ESCAPE.sub("", text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in plain)
    return len(plain) + wide - sum(unicodedata.combining(each) > 0 for each in plain)


def wrap(text: str, indent: str = "") -> str:
    """Wrap a line between its words if a terminal is too narrow; no word is split."""
    limit = terminal_width()
    if not limit or text_width(text) <= limit:
        return text
    before = text[: len(text) - len(text.lstrip())]
    first, *rest = _split_text(text.lstrip(), limit - max(len(before), len(indent)))
    return "\n".join([before + first, *(indent + each for each in rest)])


def style(text: str, colour: str, *, bold: bool = False) -> str:
    """Colour a text if the terminal has colours; it is made `visible`."""
    text = visible(text)
    return click.style(text, fg=colour, bold=bold) if has_colour() else text


def say(*lines: str, err: bool = False) -> None:
    """Print lines at once, with control characters escaped.

    All output of commands goes through this module, so that no text of others can steer a
    terminal.
    """
    click.echo("\n".join(map(visible, lines)), err=err)


def print_styled(text: str) -> None:
    """Print a line whose parts are `style`d or made `visible`."""
    click.echo(text)


def overwrite(text: str) -> None:
    """Replace the current line of standard error if it is a terminal; otherwise print nothing.

    A line that is longer than the terminal is cut, since it could not be overwritten.
    """
    if sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb":
        limit = max(shutil.get_terminal_size().columns - 1, 0)
        click.echo(f"\r\x1b[K{visible(text)[:limit]}", nl=False, err=True)


def flush() -> None:
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Print a text unchanged into a pipe or a file, and with everything visible on a terminal."""
    click.echo(visible_lines(text) if sys.stdout.isatty() else text, nl=False)


def print_table(
    columns: Sequence[Column],
    rows: Iterable[Row],
    form: str,
    *,
    nothing: str,
    headers: bool = True,
) -> None:
    """Print rows as a table, or `nothing` without rows.

    On a terminal cells are cut so that a row fits in a line, except in a `wide` table.
    """
    shown = [column for column in columns if form == WIDE or not column.wide]
    lines = ([_format_cell(column.shown(row[column.key])) for column in shown] for row in rows)
    first = next(lines, None)
    if first is None:
        click.echo(nothing, err=True)
        return
    limit = 0 if form == WIDE else terminal_width()
    _print(shown, chain([first], lines), limit, headers=headers)


def print_objects(items: Iterable[Mapping[str, Any]], form: str, *, one: bool = False) -> None:
    """Print manifests as they come: one by itself, several as a v1 List."""
    if one:
        for item in items:
            click.echo(_json(item) if form == JSON else _yaml(item), nl=form == JSON)
        return
    if form == JSON:
        click.echo('{\n "apiVersion": "v1",\n "kind": "List",\n "items": [', nl=False)
        _print_items(items)
        click.echo("]\n}")
        return
    click.echo("apiVersion: v1\nkind: List\nitems:", nl=False)
    before = "\n"
    for item in items:
        click.echo(before + _yaml([item]), nl=False)
        before = ""
    if before:
        click.echo(" []")


def print_records(rows: Iterable[Row], form: str) -> None:
    if form == JSON:
        click.echo("[", nl=False)
        _print_items(rows)
        click.echo("]")
        return
    empty = True
    for row in rows:
        empty = False
        click.echo(_yaml([dict(row)]), nl=False)
    if empty:
        click.echo("[]")


def print_rows(
    columns: Sequence[Column],
    rows: Iterable[Row],
    form: str,
    *,
    nothing: str,
    headers: bool = True,
) -> None:
    if form in {JSON, YAML}:
        print_records(rows, form)
    else:
        print_table(columns, rows, form, nothing=nothing, headers=headers)


def format_json_line(row: Mapping[str, Any]) -> str:
    return escaped_json(json.dumps(row, ensure_ascii=False, default=_plain_value))


def format_age(since: datetime | None, now: datetime) -> str:
    """Return the time since a moment in its largest unit, as 90s, 5m, 3h or 2d."""
    if since is None:
        return "never"
    seconds = max(int((now - since).total_seconds()), 0)
    for size, unit, limit in ((1, "s", 120), (60, "m", 120 * 60), (3600, "h", 48 * 3600)):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def format_age_now(since: datetime) -> str:
    return format_age(since, datetime.now(UTC))


def format_time(at: datetime | None) -> str:
    """Return a time in UTC, to the second."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def format_labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def print_document(value: Any) -> None:
    """Print one value as JSON."""
    click.echo(_json(value))


def format_count(number: int, noun: str, several: str = "") -> str:
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def _print(
    columns: Sequence[Column], lines: Iterator[Sequence[str]], limit: int, *, headers: bool
) -> None:
    widths = [text_width(column.title) if headers else 0 for column in columns]
    ahead = [[column.title for column in columns]] if headers else []
    titled = headers
    while batch := [*ahead, *islice(lines, _BATCH)]:
        for cells in batch:
            widths = [max(wide, text_width(cell)) for wide, cell in zip(widths, cells, strict=True)]
        gap, fitted = fit(columns, widths, limit) if limit else (GAP, widths)
        for cells in batch:
            for parts in _format_row(columns, cells, fitted, cut=bool(limit), title=titled):
                click.echo(gap.join(parts).rstrip())
            titled = False
        ahead = []


def _format_row(
    columns: Sequence[Column],
    cells: Sequence[str],
    widths: Sequence[int],
    *,
    cut: bool,
    title: bool,
) -> Iterator[Iterator[str]]:
    """Yield the lines of one row: one, unless a sentence continues below in its column."""
    lines = [[cell] for cell in cells]
    if cut:
        lines = [_split_cell(*each) for each in zip(columns, cells, widths, strict=True)]
        # A long word of the last column is whole, as it stands before nothing.
        lines[-1] = _split_text(cells[-1], widths[-1]) if columns[-1].prose else lines[-1]
    for line in zip_longest(*lines, fillvalue=""):
        parts = zip(columns, line, widths, strict=True)
        yield (_pad_cell(*part, title=title) for part in parts)


def _split_cell(column: Column, cell: str, wide: int) -> list[str]:
    return [_cut_cell(each, wide) for each in (_split_text(cell, wide) if column.prose else [cell])]


def _pad_cell(column: Column, cell: str, wide: int, *, title: bool) -> str:
    padding = " " * (wide - text_width(cell))
    style = STYLES.get(cell, column.style)
    if not cell or not has_colour() or not (title or style):
        return cell + padding
    return click.style(cell, bold=True) + padding if title else click.style(cell, style) + padding


def _cut_cell(cell: str, wide: int) -> str:
    if text_width(cell) <= wide:
        return cell
    while text_width(cell) >= wide:
        cell = cell[:-1]
    return f"{cell}…"


def _split_text(text: str, wide: int) -> list[str]:
    """Split a text between words; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(lines[-1]) + 1 + text_width(word) <= wide:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _format_cell(text: str) -> str:
    return visible(" ".join(text.splitlines()) if "\n" in text else text)


def _print_items(items: Iterable[Mapping[str, Any]]) -> None:
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
    return format_time(value) if isinstance(value, datetime) else dict(value)
