"""Options and arguments that several commands have, and how their values are read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from getpass import GetPassWarning
from pathlib import Path
from typing import Any, TypeVar

import click

from bellhop.cli.completion import complete_context, complete_file
from bellhop.errors import InvalidError, MissingError

F = TypeVar("F", bound=Callable[..., Any])

TABLE = "table"
WIDE = "wide"
JSON = "json"
YAML = "yaml"
NAME = "name"

READY, PROVISIONED, PROMOTED, DELETE = "ready", "provisioned", "promoted", "delete"
"""The conditions of `bellhop wait`."""

DRY = " (dry run)"
"""The end of a line about a change that was not made."""


@dataclass
class Choice:
    """The installation that the command line names, if any."""

    state: Path | None = None
    context: str | None = None


def state_options() -> list[click.Parameter]:
    """Return --state and --context, by which each command names its installation itself."""
    return [
        click.Option(
            ["--state"],
            metavar="DIR",
            type=click.Path(path_type=Path),
            help="State folder of an embedded installation.",
            expose_value=False,
            callback=_choose_state,
        ),
        click.Option(
            ["--context", "context_name"],
            metavar="NAME",
            help="A context of `bellhop context`, not of a kubeconfig.",
            expose_value=False,
            callback=_choose_context,
            shell_complete=complete_context,
        ),
    ]


def output_option(command: F) -> F:
    return _form_option(TABLE, WIDE, JSON, YAML)(command)


def named_output_option(command: F) -> F:
    return _form_option(TABLE, WIDE, NAME, JSON, YAML)(command)


def headers_option(command: F) -> F:
    return click.option(
        "--no-headers",
        "headers",
        flag_value=False,
        default=True,
        help="Omit the titles of the table.",
    )(command)


def verbose_option(command: F) -> F:
    return click.option("--verbose", is_flag=True, help="All columns, as -o wide.")(command)


def files_options(
    help: str,  # noqa: A002 - as click has it
    *,
    required: bool = False,
    stdin: bool = True,
) -> Callable[[F], F]:
    """Let a command read files and folders of manifests, and standard input if `stdin`."""

    def options(command: F) -> F:
        recursive = click.option(
            "-R", "--recursive", is_flag=True, help="Process folders recursively."
        )
        named = click.option(
            "-f",
            "--filename",
            "paths",
            multiple=True,
            required=required,
            metavar="FILE|DIR|-" if stdin else "FILE|DIR",
            shell_complete=complete_file,
            help=help,
        )
        return named(recursive(command))

    return options


def dry_run_option(command: F) -> F:
    return click.option(
        "--dry-run",
        is_flag=False,
        flag_value="client",
        type=click.Choice(["client"]),
        help="Change nothing, and report what would be changed.",
    )(command)


def applyset_options(command: F) -> F:
    """Let a command name the set of the manifests, and whether its other members are deleted."""
    for option in (
        click.option(
            "--allow-empty",
            is_flag=True,
            help="With --prune: accept empty files, and delete all members if no manifest is left;"
            " otherwise both are errors.",
        ),
        click.option(
            "--prune",
            is_flag=True,
            help="After all objects are stored, delete the members of the set that are not among"
            " the manifests, as `bellhop delete` does.",
        ),
        click.option(
            "--applyset",
            metavar="NAME",
            help="Make the objects members of this set, by the label bellhop.dev/applyset. An"
            " object of another set is refused.",
        ),
    ):
        command = option(command)
    return command


def cluster_applyset_options(command: F) -> F:
    """Let a command name the set of the clusters, and whether its other members leave."""
    for option in (
        click.option(
            "--allow-empty",
            is_flag=True,
            help="With --prune: accept empty files, and deregister all members if the files have no"
            " cluster; otherwise both are errors.",
        ),
        click.option(
            "--prune",
            is_flag=True,
            help="After all clusters are registered, deregister the members of the set that are"
            " not in the files.",
        ),
        click.option(
            "--applyset",
            metavar="NAME",
            help="With -f: make the clusters members of this set, by the label"
            " bellhop.dev/applyset. A cluster of another set is refused.",
        ),
    ):
        command = option(command)
    return command


def refuse_prune_without_set(applyset: str | None, *, prune: bool, allow_empty: bool) -> None:
    if prune and applyset is None:
        raise click.UsageError("--prune needs --applyset NAME, which says what may be deleted")
    if allow_empty and not prune:
        raise click.UsageError("--allow-empty belongs to --prune")


def _form_option(*forms: str) -> Callable[[F], F]:
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default=TABLE,
        show_default=True,
        help="Form of the output.",
    )


def _choose_state(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.find_root().ensure_object(Choice).state = value


def _choose_context(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.find_root().ensure_object(Choice).context = value


@contextmanager
def wrap_file_errors(what: str, verb: str = "read") -> Iterator[None]:
    """Raise the operating system's errors about a file, which `what` names, as Bellhop's errors.

    Raises:
        MissingError: it is not there.
        InvalidError: it cannot be read or written, or is no text.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise MissingError(f"cannot {verb} {what}: there is no such file") from error
    except UnicodeDecodeError as error:
        raise InvalidError(f"cannot read {what}: it is not UTF-8 text") from error
    except OSError as error:
        raise InvalidError(f"cannot {verb} {what}: {error.strerror}") from error


_PARTS = re.compile(r"(\d{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = timedelta(days=3660)


def read_duration(text: str) -> timedelta:
    """Read a duration such as 90s, 10m or 1h30m."""
    parts = _PARTS.findall(text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        raise InvalidError(f"cannot read '{text}' as a duration: write it like 90s, 10m or 1h30m")
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in parts)
    if seconds > _LONGEST.total_seconds():
        raise InvalidError(f"cannot look back by '{text}': nothing is kept for so long")
    return timedelta(seconds=seconds)


def read_labels(text: str) -> dict[str, str]:
    return {
        key: value
        for key, value in read_changes(part for part in text.split(",") if part).items()
        if value is not None
    }


def read_changes(parts: Iterable[str], word: str = "label") -> dict[str, str | None]:
    """Read changes such as `env=prod`, and `tier-`, which removes the label `tier`.

    The values of anything but labels are any text; `word` is its name in errors.
    """
    from bellhop.core.names import label_key_problem, label_value_problem

    changes: dict[str, str | None] = {}
    for part in parts:
        key, equals, value = part.strip().partition("=")
        if not equals and not key.endswith("-"):
            raise InvalidError(
                f"cannot read the {word} '{part}': write key=value, or key- to remove it"
            )
        key = key if equals else key.removesuffix("-")
        problem = label_key_problem(key)
        if word == "label":
            problem = problem or label_value_problem(value)
        if problem:
            raise InvalidError(f"cannot read the {word} '{part}': {problem}")
        changes[key] = value if equals else None
    return changes


_LONGEST_PASSPHRASE = 1024


def archive_options(command: F) -> F:
    """Add the FILE of an archive, and the option for its passphrase."""
    command = click.option(
        "--passphrase-file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read the passphrase from the first line of this file; otherwise the command asks"
        " for it.",
    )(command)
    return click.argument("file", type=click.Path(path_type=Path))(command)


def read_passphrase(path: Path | None, *, twice: bool = False) -> str:
    """Read the passphrase of an archive, or ask for it."""
    if path is None:
        return _prompt_passphrase(twice=twice)
    with wrap_file_errors(f"the passphrase in '{path}'"), path.open() as file:
        return file.readline(_LONGEST_PASSPHRASE).rstrip("\r\n")


def _prompt_passphrase(*, twice: bool) -> str:
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
