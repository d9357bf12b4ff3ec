"""A fleet, or an installation whose time a test moves, for every unit test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.installation import Installation
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import Fleet, OpenFleet
from tests.fakes.kube import FakeKube


@pytest.fixture
def open_fleet(tmp_path: Path) -> Iterator[OpenFleet]:
    """Open installations in folders of the test's own, and close them after it."""
    opened: list[Fleet] = []

    def make(*how: Any, **options: Any) -> Fleet:
        opened.append(Fleet(tmp_path / f"state-{len(opened)}", *how, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    """Open an installation with the settings that nobody has changed."""
    return open_fleet()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster that the rules of most tests select."""
    return fleet.register("east", env="production")


@pytest.fixture
def clock() -> FakeClock:
    """The installation's time."""
    return FakeClock()


@pytest.fixture
def here(tmp_path: Path, clock: FakeClock) -> Iterator[Installation]:
    """An installation with no cluster yet."""
    opened = open_state(tmp_path / "state", Settings(), clock=clock)
    yield opened.installation
    opened.close()
