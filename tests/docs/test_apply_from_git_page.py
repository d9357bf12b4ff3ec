"""The page on git: its files are made, its commands run, and they print what the page shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.typed import type_page

PAGE = (Path(__file__).parents[2] / "docs/how-to/apply-from-git.md").read_text()
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one, and an installation of its own."""
    monkeypatch.setenv("BELLHOP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_prints_what_stands_below_it(folder: Path) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    first, *rest = _SHELL.split(PAGE)
    type_page(first, folder)
    for shell, typed in zip(rest[::2], rest[1::2], strict=True):
        subprocess.run(["/bin/sh", "-ec", shell], cwd=folder, check=True)
        type_page(typed, folder)
