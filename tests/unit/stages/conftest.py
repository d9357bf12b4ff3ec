"""A fleet for every test of the stages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Open an installation in a folder of the test's own."""
    one = Fleet(tmp_path)
    yield one
    one.close()
