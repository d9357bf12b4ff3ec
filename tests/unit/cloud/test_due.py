"""What each tick of a cloud's timer does where its clock, or another one, was wrong."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bellhop.cloud.due import Due
from bellhop.logs import Log
from bellhop.messages import Resolve
from tests.fakes.fleet import Fleet

SECOND = timedelta(seconds=1)


def test_pulls_in_what_a_clock_set_that_was_ahead(tmp_path: Path) -> None:
    """A tick that finds the one before in the future looks for it; no house work fires so soon."""
    fleet = Fleet(tmp_path)
    here: Any = SimpleNamespace(
        records=fleet.records,
        publisher=fleet.publisher,
        settings=fleet.settings,
        log=Log(io.StringIO()),
        report_pending=lambda _: None,
    )
    due = Due(here)
    due.tick()
    with fleet.clock.behind(timedelta(minutes=-30)):
        due.tick()
        at = fleet.clock.now() + 2 * SECOND
        fleet.records.timers.set("later", at, Resolve("p").message().body)
    due.tick()
    fleet.clock.advance(2 * SECOND)
    due.tick()

    assert fleet.records.timers.get("later") is None
    fleet.close()
