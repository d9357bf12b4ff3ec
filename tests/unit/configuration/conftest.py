"""An installation in a folder, whose time a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.installation import Installation
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from tests.fakes.clock import FakeClock
from tests.unit.configuration.hub import Hub


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


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A fleet whose configuration is in a cluster."""
    one = Hub(tmp_path)
    yield one
    one.fleet.close()
