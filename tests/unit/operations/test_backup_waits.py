"""Pauses, windows and leases when an installation moves: they go on in the new place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from bellhop.errors import InvalidError
from bellhop.operations.pause import pause_cluster, set_window
from bellhop.operations.rollback import rollback, undo
from bellhop.state.deployment import DeploymentStatus
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.deploy.gates.test_rollout import OWN, at_work, clusters, has, written
from tests.unit.extras.test_role_requests import GIVEN, names, request, role, subjects
from tests.unit.operations.test_backup import Place, make

__all__ = ["make"]

WRITES = {"apply", "delete", "remove", "merge", "patch", "replace"}

HOUR = timedelta(hours=1)


@pytest.fixture
def old(make: Callable[..., Place]) -> Place:
    place = make()
    place.fleet.register("east", env="production")
    return place


def east(place: Place) -> FakeKube:
    return place.fleet.access.clusters[EAST]


def version(place: Place) -> str | None:
    found = [each["data"]["v"] for each in east(place).objects(CONFIG)]
    return found[0] if found else None


def own(v: str) -> str:
    return join(profile(), holder("own", config("own", f"v: '{v}'")))


def deploy(fleet: Fleet, v: str) -> None:
    fleet.deploy(own(v))


def outcome(fleet: Fleet) -> DeploymentStatus:
    return require_value(fleet.records.outcomes.get(EAST, "own"))


def moved(old: Place, make: Callable[..., Place]) -> Place:
    """Move, and work on all that is asked for there; the clusters' writes are counted from now."""
    archive = old.backup()
    for kube in old.fleet.access.clusters.values():
        kube.calls.clear()
    new = make(old)
    new.restore(archive)
    new.fleet.pump()
    return new


def writes(place: Place) -> list[str]:
    """Return the writes to a cluster besides its webhook."""
    ours = {"ValidatingWebhookConfiguration", "ClusterRole"}
    return [
        call.verb for call in east(place).calls if call.verb in WRITES and call.gvk.kind not in ours
    ]


def test_a_paused_cluster_stays_paused(old: Place, make: Callable[..., Place]) -> None:
    """Manifests applied meanwhile wait, and are deployed after the resume in the new place."""
    deploy(old.fleet, "1")
    pause_cluster(old.here, EAST, paused=True)
    deploy(old.fleet, "2")
    new = moved(old, make)

    assert (version(new), writes(new)) == ("1", [])
    assert outcome(new.fleet).reason == "Paused"
    pause_cluster(new.here, EAST, paused=False)
    new.fleet.pump()
    assert version(new) == "2"


def test_a_window_opens_in_the_new_place(old: Place, make: Callable[..., Place]) -> None:
    """By the timer that moved along: nothing is written before, and after it closes."""
    fleet = old.fleet
    opens = (fleet.clock.now() + 3 * HOUR).replace(minute=0, second=0, microsecond=0)
    set_window(old.here, EAST, f"0 {opens.hour} * * *", f"0 {opens.hour + 1} * * *")
    deploy(fleet, "1")
    new = moved(old, make)
    assert (version(new), outcome(new.fleet).retry_at) == (None, opens)

    new.fleet.clock.advance(opens - new.fleet.clock.now())
    rig.tick(new.fleet)
    new.fleet.pump()
    assert version(new) == "1"

    new.fleet.clock.advance(HOUR)
    deploy(new.fleet, "2")
    assert version(new) == "1"


def test_rights_stay_and_go_with_their_request(old: Place, make: Callable[..., Place]) -> None:
    """A RoleRequest is bound as it was, with nothing written, and is withdrawn from there."""
    old.fleet.apply(request(), holder("roles", role()))
    old.fleet.pump()
    new = moved(old, make)
    assert (names(east(new)), writes(new)) == (GIVEN, [])
    assert subjects(east(new)) == [("team/ann", "writes")]

    new.fleet.declare.delete([("RoleRequest", "", "anns")])
    new.fleet.pump()

    assert names(east(new)) == []


def test_what_was_rolled_back_stays_so(old: Place, make: Callable[..., Place]) -> None:
    """With its earlier revisions: what is declared comes once that is undone."""
    for v in "123":
        deploy(old.fleet, v)
    rollback(old.here, "own", 1)
    old.fleet.pump()
    new = moved(old, make)
    assert version(new) == "1"
    rollback(new.here, "own", 2)
    new.fleet.pump()
    assert version(new) == "2"

    undo(new.here, "own")
    new.fleet.pump()

    assert version(new) == "3"


def test_a_roll_out_that_has_stopped_stays_so(make: Callable[..., Place]) -> None:
    """Those that fail keep their places, and it goes on once they are mended."""
    old = make()
    kubes = clusters(old.fleet, 3)
    old.fleet.apply(written("1", "1"))
    old.fleet.pump()
    mended = kubes[0].refuse("own", InvalidError("no"))
    old.fleet.apply(written("2", "1"))
    old.fleet.pump()
    before = at_work(old.fleet)
    new = moved(old, make)
    assert (before, at_work(new.fleet), has(new.fleet, "2")) == (["fleet/c0"], ["fleet/c0"], [])

    mended()
    new.fleet.clock.advance(HOUR + timedelta(minutes=1))
    rig.tick(new.fleet)
    new.fleet.pump()

    assert has(new.fleet, "2") == ["c0", "c1", "c2"]
    assert new.fleet.records.rotas.get(OWN) is None
