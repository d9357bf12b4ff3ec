"""The schedule of the embedded mode clears up what records left behind."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

from bellhop.embedded.state import open_state
from bellhop.embedded.workers import Workers
from bellhop.logs import Log
from bellhop.settings import Settings
from tests.fakes.clock import FakeClock
from tests.unit.records.rig import LARGE, profile


def test_collects_blobs_that_no_record_names(tmp_path: Path) -> None:
    """A day after their record went, within an hour."""
    clock = FakeClock()
    embedded = open_state(tmp_path / "state", Settings(), clock=clock)
    records = embedded.installation.records
    workers = Workers(embedded, {}, Log(io.StringIO()))
    records.profiles.put(profile(LARGE))
    records.profiles.put(profile("small"))

    def blobs() -> int:
        workers._tick()
        return sum(path.is_file() for path in (tmp_path / "state" / "blobs").rglob("*"))

    assert blobs() == 1
    clock.advance(timedelta(hours=23, minutes=59))
    assert blobs() == 1
    clock.advance(timedelta(hours=1))
    assert blobs() == 0
    embedded.close()
