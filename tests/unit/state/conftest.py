"""Records for every test of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.state.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    one = Rig(tmp_path)
    yield one
    one.store.close()
