"""The page on CEL: its files are made, its commands run, and they print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellhop.celbox.library import functions
from bellhop.celbox.limits import Limits
from bellhop.cli.main import cli

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-cel.md").read_text()
BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_command_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    said, compared = "", 0
    for language, mark, body in BLOCK.findall(PAGE):
        if language == "bash":
            program, *arguments = shlex.split(body)
            assert program == "bellhop"
            said = CliRunner().invoke(cli, arguments).stderr
        elif mark.startswith("file="):
            path = Path(mark.removeprefix("file="))
            path.parent.mkdir(exist_ok=True)
            path.write_text(body)
        else:
            compared += 1

            assert body.strip() in said

    assert compared == PAGE.count("\nbellhop ")


def test_every_function_is_named() -> None:
    """The table has what is declared, and the limits are those that hold."""
    table = PAGE[PAGE.index("| Of | Functions |") : PAGE.index("Sveltos has CEL")]

    assert {each.name for each in functions()} <= set(re.findall(r"`([\w.]+)`", table))
    assert f"| {Limits().size // 1024} KiB |" in PAGE
    assert f"| {Limits().memory // 1024**2} MiB," in PAGE
    assert f"| {Limits().depth} |" in PAGE
