"""An installation in a folder, whose time a test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bellhop.installation import Installation
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from tests.fakes import rig
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
def make_hub() -> Iterator[Callable[..., Hub]]:
    """Make installations whose configuration is in a cluster, each in a folder of its own."""
    with ExitStack() as end:

        def make(settings: Settings | None = None) -> Hub:
            end.close()
            one = Hub(Path(end.enter_context(rig.folder())), settings)
            end.callback(one.fleet.close)
            return one

        yield make


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A fleet whose configuration is in a cluster."""
    one = Hub(tmp_path)
    yield one
    one.fleet.close()
