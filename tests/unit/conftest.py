"""A fleet for every unit test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
