"""Pages that need no cluster: their files are made, their commands run and print what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.typed import type_page

HOW_TO = Path(__file__).parents[2] / "docs/how-to"


PAGES = ["deploy-helm-charts.md", "react-to-an-event.md", "write-cel.md", "write-lua.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_prints_what_stands_below_it(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    type_page((HOW_TO / page).read_text(), tmp_path)
