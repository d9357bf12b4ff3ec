"""The page on Lua: its files are made, its commands run, and they print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.typed import type_page

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-lua.md").read_text()


def test_every_command_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    type_page(PAGE, tmp_path)
