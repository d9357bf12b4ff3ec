"""Two who register a cluster under one new name at once: the later one takes nothing away."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.record import Cluster
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile
from tests.fakes.share import SHARE
from tests.unit.stages.test_overlap import CONFIG

pytestmark = pytest.mark.rest

EAST = "fleet/east"
_CALLS = 400
"""More than this history has."""


def unknown(folder: Path) -> tuple[Fleet, FakeKube]:
    """Return a fleet that does not know its only cluster yet, with what is to be brought there."""
    folder.mkdir()
    fleet, kube = Fleet(folder), FakeKube(EAST)
    fleet.access.clusters[EAST] = kube
    fleet.apply(profile(), holder("own", config("a")))
    fleet.pump()
    return fleet, kube


def register(fleet: Fleet, token: str) -> None:
    """Register it, as one that nobody has registered yet."""
    at = fleet.clock.now()
    cluster = Cluster("fleet", "east", {"env": "production"}, "v1.20.2", token, at)
    fleet.declare.register(cluster, expect=ABSENT)


def settle(fleet: Fleet) -> None:
    """Do all that is asked for, and what whoever died left to do."""
    fleet.pump()
    fleet.clock.advance(timedelta(seconds=130))
    rig.tick(fleet)
    fleet.pump()


def test_what_was_brought_for_the_first_stays_known(tmp_path: Path) -> None:
    """Whichever call of the later one it is before which the first one was quicker.

    It takes long: it plays once for a share of the calls of the store.
    """
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
        settle(fleet)
        assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == ["a"]
        assert fleet.records.owners.of(EAST), number
        assert fleet.records.inventories.get(EAST, "own"), number
        fleet.declare.delete([("ClusterProfile", "", "own")])
        settle(fleet)

        assert east.objects(CONFIG) == [], number
        fleet.close()
    pytest.fail("it never came to its end")
