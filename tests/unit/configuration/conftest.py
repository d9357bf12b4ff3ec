"""Fleets whose configuration is in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bellhop.settings import Settings
from tests.fakes import rig
from tests.unit.configuration.hub import Hub


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
