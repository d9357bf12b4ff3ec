"""The page on CloudEvents: its files are made, its commands run, and they print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.engine.cloud_events import BATCH, LONGEST, MOST_EVENTS, STRUCTURED
from bellhop.records.arrivals import REMEMBERED
from tests.docs.typed import type_page

PAGE = (Path(__file__).parents[2] / "docs/how-to/receive-cloudevents.md").read_text()


def test_every_command_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    type_page(PAGE, tmp_path)


def test_tells_the_limits_that_hold() -> None:
    """Types of content, sizes and times are those of the code."""
    assert f"`{STRUCTURED}`" in PAGE
    assert f"up to {MOST_EVENTS} as `{BATCH}`" in PAGE
    assert f"up to {LONGEST:,} characters" in PAGE
    assert REMEMBERED.days == 30
    assert "known for thirty days" in PAGE
