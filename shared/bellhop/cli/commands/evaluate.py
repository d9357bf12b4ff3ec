"""`bellhop evaluate` and `bellhop test`: EventSources tried on objects, without a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellhop.cli.command import Command
from bellhop.cli.completion import complete_file
from bellhop.cli.options import headers_option, output_option
from bellhop.cli.output import Column, format_count, print_rows, say, style
from bellhop.core.printable import visible
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.api.kinds import EventSource
    from bellhop.diagnosis.source_evaluation import EvaluatedObject
    from bellhop.diagnosis.source_tests import Case


def _format_match(matching: bool | None) -> str:  # noqa: FBT001 - a cell's value
    return "failed" if matching is None else ("yes" if matching else "no")


_COLUMNS = (
    Column("OBJECT", "object"),
    Column("MATCHES", "matching", shown=_format_match),
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
    from bellhop.cli.manifest_files import list_files, read_files
    from bellhop.diagnosis.access_gaps import list_offline_gaps
    from bellhop.diagnosis.source_evaluation import SourceEvaluator, read_objects
    from bellhop.settings import read

    if source == "-" and "-" in paths:
        raise click.UsageError("the source and --object cannot both be standard input")
    sources = _read_sources(source)
    found = list(read_objects(read_files(list_files(paths, recursive=recursive))))
    evaluator = SourceEvaluator(read(os.environ), quoting=show_secrets)
    tried = [(each, one) for each in sources for one in evaluator.attempt_all(each, found)]
    for hint in list_offline_gaps(*sources):
        say(f"warning: {hint}", err=True)
    rows = [_row(of.name, one) for of, one in tried]
    several = Column("SOURCE", "source", wide=len(sources) == 1)
    print_rows((several, *_COLUMNS), rows, form, nothing="No objects found.", headers=headers)
    for _, one in tried:
        if one.error:
            # All were evaluated; the exit code reports this one.
            raise one.error


def _read_sources(named: str) -> list[EventSource]:
    """Return the sources of a file, or the applied one of a name."""
    if named != "-" and not Path(named).exists():
        return [_find_source(named)]
    from bellhop.api.kinds import EventSource
    from bellhop.cli.manifest_files import list_files, read_files, validate

    given = validate(read_files(list_files([named], recursive=False)))
    found = [each for each in given if isinstance(each, EventSource)]
    if not found:
        raise InvalidError(f"cannot evaluate '{named}': it has no EventSource; name its file")
    return found


def _find_source(name: str) -> EventSource:
    from bellhop.cli import session

    neither = f"cannot evaluate '{name}': there is no such file, and no EventSource of that name"
    try:
        here = session.open_read_only()
    except MissingError as error:
        raise MissingError(f"{neither}, as there is no installation") from error
    found = here.catalogs.current().sources.get(name)
    if found is None:
        raise MissingError(f"{neither}; see `bellhop get eventsources`")
    return found


def _row(source: str, tried: EvaluatedObject) -> dict[str, Any]:
    from bellhop.diagnosis.names import object_name

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


@click.command(
    "test",
    cls=Command,
    state=False,
    examples=("bellhop test sources/", "bellhop test . --junit report.xml"),
)
@click.argument("folder", metavar="DIR", shell_complete=complete_file)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write a report in JUnit's XML as well.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only failures and the summary.")
@click.pass_context
def test(ctx: click.Context, folder: str, junit: str | None, *, quiet: bool) -> None:
    """Test each EventSource in a folder and its subfolders on the objects next to it.

    A folder has eventsource.yaml with one source, and if present matching.yaml and
    non-matching.yaml with objects that match it and that do not. A line for each object and a
    summary are printed; the exit code is 1 if anything fails, or cannot be tested.
    """
    from bellhop.cli.manifest_files import read_files, validate
    from bellhop.diagnosis.source_evaluation import SourceEvaluator
    from bellhop.diagnosis.source_tests import SourceTests
    from bellhop.settings import read

    cases = []
    for case in SourceTests(read_files, validate, SourceEvaluator(read(os.environ))).run(
        Path(folder)
    ):
        cases.append(case)
        if case.wrong or not quiet:
            _report_case(case)
    if junit is not None:
        _write_junit(junit, cases)
    failed = sum(bool(each.wrong) for each in cases)
    said = f"{format_count(len(cases), 'case')}: {len(cases) - failed} passed, {failed} failed"
    say(style(said, "red" if failed else "green"))
    ctx.exit(1 if failed else 0)


def _report_case(case: Case) -> None:
    word = "ERROR" if case.broken else ("FAIL" if case.wrong else "ok")
    place = Path(case.folder) / case.file
    said = style(f"{word:<5}", "red" if case.wrong else "green")
    say(f"{said} {place}: {case.name}" + (f": {case.wrong}" if case.wrong else ""))


def _write_junit(path: str, cases: Sequence[Case]) -> None:
    try:
        Path(path).write_text(_format_junit(cases), encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"cannot write the report '{path}': {error.strerror}") from error


def _format_junit(cases: Iterable[Case]) -> str:
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    root = Element("testsuites")
    for folder, each in groupby(cases, attrgetter("folder")):
        inside = list(each)
        suite = SubElement(
            root,
            "testsuite",
            name=_escape_xml(folder),
            tests=str(len(inside)),
            failures=str(sum(bool(one.wrong) and not one.broken for one in inside)),
            errors=str(sum(one.broken for one in inside)),
            time=_format_seconds(sum(one.took_ms for one in inside)),
        )
        for one in inside:
            case = SubElement(
                suite,
                "testcase",
                classname=_escape_xml(f"{folder}/{one.file}"),
                name=_escape_xml(one.name),
                time=_format_seconds(one.took_ms),
            )
            if one.wrong:
                SubElement(
                    case, "error" if one.broken else "failure", message=_escape_xml(one.wrong)
                )
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _escape_xml(text: str) -> str:
    """Escape control characters, and two characters that XML cannot have."""
    return visible(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _format_seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.6f}"
