"""The page on templates: its files are made, its commands run, and they print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellhop.cli.main import cli
from bellhop.jinjabox.checks import TESTS
from bellhop.jinjabox.lists import ALL

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-templates.md").read_text()
BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_command_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    printed, said, compared = "", "", 0
    for language, mark, body in BLOCK.findall(PAGE):
        if language == "bash":
            program, *arguments = shlex.split(body)
            assert program == "bellhop"
            result = CliRunner().invoke(cli, arguments)
            printed, said = result.stdout, result.stderr
        elif mark.startswith("file="):
            path = Path(mark.removeprefix("file="))
            path.parent.mkdir(exist_ok=True)
            path.write_text(body)
        else:
            compared += 1

            assert body.strip() in (said if mark == "error" else printed)

    assert compared == PAGE.count("\nbellhop ")


def names(row: str) -> set[str]:
    """Return the names in one row of the table of what Jinja2 has here."""
    (found,) = re.findall(rf"^\| {row} \| (.*) \|$", PAGE, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", found))


def test_every_filter_and_test_is_named() -> None:
    """The page names all filters and tests, and none that is not there."""
    spellings = {"toJson", "toYaml", "toyaml", "fromJson", "fromYaml", "fromyaml"}
    filters = names("filters on texts") | names("filters on lists and mappings")
    filters |= names("other filters")
    tests = {each for each in TESTS if each.isalpha()} - {"equalto", "lessthan", "greaterthan"}

    assert filters == set(ALL) - spellings
    assert names("tests") == tests
