"""Options that many commands share, and what the root command was told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from bellhop.cli.completion import complete_context, complete_file

F = TypeVar("F", bound=Callable[..., Any])

TABLE = "table"
WIDE = "wide"
JSON = "json"
YAML = "yaml"
NAME = "name"

READY, PROVISIONED, DELETE = "ready", "provisioned", "delete"
"""What `bellhop wait` waits for."""

DRY = " (dry run)"
"""What ends the line of a change that was not made."""


@dataclass
class Choice:
    """Which installation the command line names, if it does."""

    state: Path | None = None
    context: str | None = None


def state_option(command: F) -> F:
    """Let a command name its installation itself, by folder or context, as the root command can."""
    command = click.option(
        "--context",
        "context_name",
        metavar="NAME",
        help="A context of `bellhop context`, not of a kubeconfig.",
        expose_value=False,
        callback=_choose_context,
        shell_complete=complete_context,
    )(command)
    return click.option(
        "--state",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="State folder of an embedded installation.",
        expose_value=False,
        callback=_choose_state,
    )(command)


def output_option(command: F) -> F:
    """Let the user choose the form of the output."""
    return _form_option(TABLE, WIDE, JSON, YAML)(command)


def named_output_option(command: F) -> F:
    """Let the user choose the form of the output, names alone among them."""
    return _form_option(TABLE, WIDE, NAME, JSON, YAML)(command)


def headers_option(command: F) -> F:
    """Let the user leave out the titles of a table."""
    return click.option(
        "--no-headers",
        "headers",
        flag_value=False,
        default=True,
        help="Omit the titles of the table.",
    )(command)


def verbose_option(command: F) -> F:
    """Let the user ask for all columns in sveltosctl's word."""
    return click.option("--verbose", is_flag=True, help="All columns, as -o wide.")(command)


def form_of(form: str, *, verbose: bool) -> str:
    """Return the form of the output: all columns where that is asked for, of a table."""
    return WIDE if verbose and form == TABLE else form


def files_options(
    help: str,  # noqa: A002 - as click has it
    *,
    required: bool = False,
    stdin: bool = True,
) -> Callable[[F], F]:
    """Let a command read files and folders of manifests, and standard input unless it does not."""

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
    """Let a command say what it would do, and do nothing."""
    return click.option(
        "--dry-run",
        is_flag=False,
        flag_value="client",
        type=click.Choice(["client"]),
        help="Change nothing, and report what would be changed.",
    )(command)


def applyset_options(command: F) -> F:
    """Let a command name the set that manifests are members of, and what may be deleted of it."""
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
    """Let a command name the set that clusters are members of, and whether others leave."""
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


def refuse_prune_alone(applyset: str | None, *, prune: bool, allow_empty: bool) -> None:
    """See that what may be deleted is named.

    Raises:
        UsageError: it is not.
    """
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
