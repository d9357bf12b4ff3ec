"""Options that many commands share, and what the root command was told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

TABLE = "table"
WIDE = "wide"
JSON = "json"
YAML = "yaml"


@dataclass
class Choice:
    """Which installation the command line names, if it does."""

    state: Path | None = None
    context: str | None = None


def state_option(command: F) -> F:
    """Let a command name the state folder itself, as the root command can."""
    return click.option(
        "--state",
        type=click.Path(path_type=Path),
        help="State folder of an embedded installation.",
        expose_value=False,
        callback=_choose,
    )(command)


def output_option(command: F) -> F:
    """Let the user choose the form of the output."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice([TABLE, WIDE, JSON, YAML]),
        default=TABLE,
        show_default=True,
        help="Form of the output.",
    )(command)


def _choose(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.find_root().ensure_object(Choice).state = value
