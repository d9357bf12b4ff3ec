"""`bellhop evaluate`: what an EventSource makes of objects, without a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli.completion import complete_file
from bellhop.cli.examples import Command
from bellhop.cli.options import headers_option, output_option, state_option
from bellhop.cli.output import Column, present, say
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.api.kinds import EventSource
    from bellhop.diagnosis.source_evaluation import Tried


def _answer(matching: bool | None) -> str:  # noqa: FBT001 - a cell's value
    return "failed" if matching is None else ("yes" if matching else "no")


_COLUMNS = (
    Column("OBJECT", "object"),
    Column("MATCHES", "matching", shown=_answer),
    Column("SELECTOR", "selector", shown=lambda number: str(number or "")),
    Column("MS", "ms", wide=True),
    Column("WHY", "because", prose=True),
)


@click.command(
    "evaluate",
    cls=Command,
    usage=("FILE|NAME --object FILE|DIR|- [OPTIONS]",),
    examples=(
        "bellhop evaluate source.yaml --object service.yaml",
        "kubectl get services -A -o yaml | bellhop evaluate source.yaml --object -",
        "bellhop evaluate load-balancers --object service.yaml -o json",
    ),
)
@click.argument("source", metavar="FILE|NAME", shell_complete=complete_file)
@click.option(
    "--object",
    "paths",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    shell_complete=complete_file,
    help="Objects or CloudEvents to evaluate; may be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Process folders recursively.")
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Quote values of Secrets in errors and results; they are hidden otherwise.",
)
@output_option
@headers_option
@state_option
def command(
    source: str,
    paths: Sequence[str],
    form: str,
    *,
    recursive: bool,
    show_secrets: bool,
    headers: bool,
) -> None:
    """Show whether objects match an EventSource, by which of its selectors, and why.

    Selectors are counted from 1. The source comes from a file, or is one that was applied; if a
    file has several, each is tried. Labels, Lua and CEL are evaluated as for events, within the
    same limits, and nothing is written. For an aggregatedSelection the objects are all that the
    cluster has. If a script fails, its line is reported; the other objects are still evaluated, and
    the exit code is 1.
    """
    from bellhop.cli.manifest_files import documents, files
    from bellhop.diagnosis.access_gaps import offline
    from bellhop.diagnosis.source_evaluation import SourceTrial, objects
    from bellhop.settings import read

    if source == "-" and "-" in paths:
        raise click.UsageError("the source and --object cannot both be standard input")
    sources = _sources(source)
    found = list(objects(documents(files(paths, recursive=recursive))))
    trial = SourceTrial(read(os.environ), quoting=show_secrets)
    tried = [(each, one) for each in sources for one in trial.attempt_all(each, found)]
    for hint in offline(*sources):
        say(f"warning: {hint}", err=True)
    rows = [_row(of.name, one) for of, one in tried]
    several = Column("SOURCE", "source", wide=len(sources) == 1)
    present((several, *_COLUMNS), rows, form, nothing="No objects found.", headers=headers)
    for _, one in tried:
        if one.error:
            # All were tried; the exit code tells of this one.
            raise one.error


def _sources(named: str) -> list[EventSource]:
    """Return the sources of a file, or the declared one of a name.

    Raises:
        InvalidError: the file has mistakes, or no source.
        MissingError: there is neither.
    """
    if named != "-" and not Path(named).exists():
        return [_declared(named)]
    from bellhop.api.kinds import EventSource
    from bellhop.cli.manifest_files import declarations, documents, files

    given = declarations(documents(files([named], recursive=False)))
    found = [each for each in given if isinstance(each, EventSource)]
    if not found:
        raise InvalidError(f"cannot evaluate '{named}': it has no EventSource; name its file")
    return found


def _declared(name: str) -> EventSource:
    from bellhop.cli import session

    neither = f"cannot evaluate '{name}': there is no such file, and no EventSource of that name"
    try:
        here = session.looking()
    except MissingError as error:
        raise MissingError(f"{neither}, as there is no installation") from error
    found = here.catalogs.current().sources.get(name)
    if found is None:
        raise MissingError(f"{neither}; see `bellhop get eventsources`")
    return found


def _row(source: str, tried: Tried) -> dict[str, Any]:
    from bellhop.diagnosis.overview import object_name

    return {
        "source": source,
        "object": object_name(tried.key),
        "matching": None if tried.error else tried.matching,
        "selector": tried.selector,
        "because": tried.because,
        "message": tried.message,
        "ms": tried.took_ms,
        "error": str(tried.error) if tried.error else "",
    }
