"""Results of a command by object: a line for people at once, or a list for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bellhop.cli.kinds import shown_name
from bellhop.cli.options import JSON, NAME, TABLE, YAML
from bellhop.cli.output import records, say

if TYPE_CHECKING:
    from bellhop.api.kinds import DeclarationKey

F = TypeVar("F", bound=Callable[..., Any])


def results_option(command: F) -> F:
    """Let the user choose the form in which results are printed."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice([TABLE, NAME, JSON, YAML]),
        default=TABLE,
        help="Print results as lines, names, JSON or YAML.",
    )(command)


class Results:
    """Prints results in a form; `after` ends each line, and programs read it as `dryRun`."""

    def __init__(self, form: str, after: str = "") -> None:
        self._form = form
        self._after = after
        self._rows: list[dict[str, Any]] = []

    def add(self, key: DeclarationKey, api_version: str, change: str) -> None:
        """Print the result of an object, or keep it until `finish`."""
        name = shown_name(key.kind, api_version, key.name)
        if self._form == TABLE:
            say(f"{name} {change}{self._after}")
        elif self._form == NAME:
            say(name)
        else:
            self._rows.append(
                {
                    "apiVersion": api_version,
                    "kind": key.kind,
                    "namespace": key.namespace,
                    "name": key.name,
                    "result": change,
                    "dryRun": bool(self._after),
                }
            )

    def finish(self) -> None:
        """Print the kept results as one list."""
        if self._form in {JSON, YAML}:
            records(self._rows, self._form)
