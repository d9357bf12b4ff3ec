"""`bellhop test`: EventSources tested on the objects that lie beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.completion import complete_file
from bellhop.cli.examples import Command
from bellhop.cli.output import count, say, styled
from bellhop.core.printable import visible
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.diagnosis.source_tests import Case


@click.command(
    "test", cls=Command, examples=("bellhop test sources/", "bellhop test . --junit report.xml")
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
def command(ctx: click.Context, folder: str, junit: str | None, *, quiet: bool) -> None:
    """Test each EventSource in a folder and its subfolders on the objects next to it.

    A folder has eventsource.yaml with one source, and if present matching.yaml and
    non-matching.yaml with objects that match it and that do not. A line for each object and a
    summary are printed; the exit code is 1 if anything fails, or cannot be tested.
    """
    from bellhop.cli.manifest_files import declarations, documents
    from bellhop.diagnosis.source_evaluation import SourceTrial
    from bellhop.diagnosis.source_tests import Folders
    from bellhop.settings import read

    cases = []
    for case in Folders(documents, declarations, SourceTrial(read(os.environ))).run(Path(folder)):
        cases.append(case)
        if case.wrong or not quiet:
            _say(case)
    if junit is not None:
        _write(junit, cases)
    failed = sum(bool(each.wrong) for each in cases)
    said = f"{count(len(cases), 'case')}: {len(cases) - failed} passed, {failed} failed"
    say(styled(said, "red" if failed else "green"))
    ctx.exit(1 if failed else 0)


def _say(case: Case) -> None:
    word = "ERROR" if case.broken else ("FAIL" if case.wrong else "ok")
    place = Path(case.folder) / case.file
    said = styled(f"{word:<5}", "red" if case.wrong else "green")
    say(f"{said} {place}: {case.name}" + (f": {case.wrong}" if case.wrong else ""))


def _write(path: str, cases: Sequence[Case]) -> None:
    """Write a report; what XML cannot hold is spelled out.

    Raises:
        InvalidError: the file cannot be written.
    """
    try:
        Path(path).write_text(_report(cases), encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"cannot write the report '{path}': {error.strerror}") from error


def _report(cases: Iterable[Case]) -> str:
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    root = Element("testsuites")
    for folder, each in groupby(cases, attrgetter("folder")):
        inside = list(each)
        suite = SubElement(
            root,
            "testsuite",
            name=_plain(folder),
            tests=str(len(inside)),
            failures=str(sum(bool(one.wrong) and not one.broken for one in inside)),
            errors=str(sum(one.broken for one in inside)),
            time=_seconds(sum(one.took_ms for one in inside)),
        )
        for one in inside:
            case = SubElement(
                suite,
                "testcase",
                classname=_plain(f"{folder}/{one.file}"),
                name=_plain(one.name),
                time=_seconds(one.took_ms),
            )
            if one.wrong:
                SubElement(case, "error" if one.broken else "failure", message=_plain(one.wrong))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _plain(text: str) -> str:
    """Return a text that XML can hold: two characters it knows no way to write."""
    return visible(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.6f}"
