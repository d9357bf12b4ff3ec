"""A cluster whose Services a source names."""

from __future__ import annotations

import pytest

from tests.fakes.fleet import Fleet


@pytest.fixture
def watching(fleet: Fleet) -> Fleet:
    """Return an installation with a cluster in which Services count."""
    fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    return fleet
