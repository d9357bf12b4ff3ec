"""The page on CEL: its files are made, its commands run, and they print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bellhop.celbox.library import functions
from bellhop.celbox.limits import Limits
from tests.docs.typed import type_page

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-cel.md").read_text()


def test_every_command_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    type_page(PAGE, tmp_path)


def test_every_function_is_named() -> None:
    """The table has what is declared, and the limits are those that hold."""
    table = PAGE[PAGE.index("| Of | Functions |") : PAGE.index("Sveltos has CEL")]

    assert {each.name for each in functions()} <= set(re.findall(r"`([\w.]+)`", table))
    assert f"| {Limits().size // 1024} KiB |" in PAGE
    assert f"| {Limits().memory // 1024**2} MiB," in PAGE
    assert f"| {Limits().depth} |" in PAGE
