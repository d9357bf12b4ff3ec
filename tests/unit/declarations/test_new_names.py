"""Two who register a cluster under one new name at once: the later one takes nothing away."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import Cluster
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, profile
from tests.fakes.share import SHARE

pytestmark = pytest.mark.rest

_CALLS = 400
"""More than this history has."""


def unknown(folder: Path) -> tuple[Fleet, FakeKube]:
    """Return a fleet that does not know its only cluster yet, with add-ons to deploy there."""
    folder.mkdir()
    fleet, kube = Fleet(folder), FakeKube(EAST)
    fleet.access.clusters[EAST] = kube
    fleet.deploy(profile(), holder("own", config("a")))
    return fleet, kube


def register(fleet: Fleet, token: str) -> None:
    """Register it, as a cluster of a new name."""
    at = fleet.clock.now()
    cluster = Cluster("fleet", "east", {"env": "production"}, "v1.20.2", token, at)
    fleet.declare.register(cluster, expect=ABSENT)


def test_what_was_deployed_for_the_first_stays_recorded(tmp_path: Path) -> None:
    """Whichever call of the later one it is before which the first one was quicker."""
    for number in range(2, _CALLS, 3 * SHARE):
        folder = tmp_path / f"{number}"
        fleet, east = unknown(folder)
        # Of another process, which keeps in mind what it has read itself.
        other = Fleet(folder, clock=fleet.clock)
        other.access.clusters[EAST] = east

        def first(other: Fleet = other) -> None:
            register(other, "first")
            other.pump()

        with interrupted(fleet.records, number, first) as found, suppress(StaleError):
            register(fleet, "later")
        other.close()
        if not found.met:
            fleet.close()
            return
        rig.settle(fleet, 1)
        assert east.names() == ["a"]
        assert fleet.records.owners.of(EAST), number
        assert fleet.records.inventories.get(EAST, "own"), number
        fleet.declare.delete([("ClusterProfile", "", "own")])
        rig.settle(fleet, 1)

        assert east.objects(CONFIG) == [], number
        fleet.close()
    pytest.fail("it never came to its end")
