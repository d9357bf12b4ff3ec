"""Passphrases: from a file, or typed unseen; never an argument, which everybody can list."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from getpass import GetPassWarning
from pathlib import Path
from typing import Any, TypeVar

import click

from bellhop.cli.files import explained
from bellhop.errors import InvalidError

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST = 1024


def passphrase_option(command: F) -> F:
    """Let a command be told where the passphrase of an archive is."""
    return click.option(
        "--passphrase-file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read the passphrase from the first line of this file; otherwise the command asks"
        " for it.",
    )(command)


def read_passphrase(path: Path | None, *, twice: bool = False) -> str:
    """Read the passphrase of an archive, or ask for it.

    Raises:
        MissingError: the file is not there.
        InvalidError: it cannot be read, or there is nobody to ask.
    """
    if path is None:
        return _asked(twice=twice)
    with explained(f"the passphrase in '{path}'"), path.open() as file:
        return file.readline(_LONGEST).rstrip("\r\n")


def _asked(*, twice: bool) -> str:
    with warnings.catch_warnings():
        # Python would read from standard input then, and show what is typed.
        warnings.simplefilter("error", GetPassWarning)
        try:
            typed: str = click.prompt(
                "Passphrase of the archive", hide_input=True, confirmation_prompt=twice, err=True
            )
        except GetPassWarning as error:
            raise InvalidError(
                "cannot ask for the passphrase: there is no terminal; name its file with"
                " --passphrase-file"
            ) from error
    return typed
