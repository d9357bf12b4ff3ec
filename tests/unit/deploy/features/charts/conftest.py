"""A cluster that can have releases of the chart `web`."""

from __future__ import annotations

import pytest

from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster, and publish two versions of a chart."""
    fleet.repositories.put("web", "1.0.0", "1.1.0")
    return fleet.register("east", env="production")
