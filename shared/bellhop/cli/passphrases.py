"""Passphrases: from a file, or typed unseen; never an argument, which everybody can list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bellhop.errors import InvalidError

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST = 1024


def passphrase_option(command: F) -> F:
    """Let a command be told where the passphrase of an archive is."""
    return click.option(
        "--passphrase-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File whose first line is the archive's passphrase; else it is asked for.",
    )(command)


def read_passphrase(path: Path | None, *, twice: bool = False) -> str:
    """Read the passphrase of an archive, or ask for it.

    Raises:
        InvalidError: the file cannot be read.
    """
    if path is None:
        typed: str = click.prompt(
            "Passphrase of the archive", hide_input=True, confirmation_prompt=twice, err=True
        )
        return typed
    try:
        with path.open() as file:
            return file.readline(_LONGEST).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InvalidError(f"cannot read the passphrase in '{path}': {reason}") from error
