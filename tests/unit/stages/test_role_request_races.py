"""Two RoleRequests for one account, at the moments at which another is quicker, or one dies."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile
from tests.fakes.mortal import Fate, Killed, Mortal, kill_before_publishing
from tests.fakes.share import SHARE
from tests.unit.stages.test_role_requests import ACCOUNT, GIVEN, names, request, role, subjects

pytestmark = pytest.mark.rest

EAST = "fleet/east"
ANNS = profile().replace(
    "metadata: {", f"metadata: {{labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, "
)
_CALLS = 400
"""More than any of these histories has."""


def settle(fleet: Fleet) -> None:
    """Let all go on that waits, be it for a lease of somebody who is dead."""
    for _ in range(3):
        fleet.clock.advance(timedelta(seconds=130))
        rig.tick(fleet)
        fleet.pump()


def leave(fleet: Fleet, name: str) -> None:
    """Delete a RoleRequest, and have one worker do all that follows in the cluster."""
    fleet.declare.delete([("RoleRequest", "", name)])
    deploy = fleet.stages["deploy"]
    deploy.handle(Resolve(f"RoleRequest:{name}"))
    deploy.handle(Apply("", "", f"RoleRequest:{name}", EAST))


@pytest.mark.parametrize("number", range(0, 40, 2))
def test_who_comes_while_another_goes_has_the_account(fleet: Fleet, number: int) -> None:
    """Whichever call of his the other one's end lies before."""
    east = fleet.register("east", env="production")
    fleet.apply(request("first"), holder("roles", role()))
    fleet.pump()
    fleet.apply(request())
    deploy = fleet.stages["deploy"]
    deploy.handle(Resolve("RoleRequest:anns"))

    with interrupted(fleet.records, number, lambda: leave(fleet, "first")) as found:
        deploy.handle(Apply("", "", "RoleRequest:anns", EAST))
    if not found.met:
        leave(fleet, "first")
    settle(fleet)

    assert names(east) == GIVEN
    assert subjects(east) == [("team/ann", "writes")]
    leave(fleet, "anns")
    settle(fleet)
    assert names(east) == []


def mortal(folder: Path, fate: Fate) -> tuple[Fleet, FakeKube]:
    """Return a fleet in which two have given an account rights, and whose process may die."""
    folder.mkdir()
    fleet = Fleet(folder)
    east = fleet.register("east", env="production")
    fleet.apply(request(), request("also"), holder("roles", role()))
    fleet.pump()
    rig.interpose(fleet, lambda name, port: Mortal(name, port, fate))
    fleet.access.clusters = {EAST: east}
    return fleet, east


@pytest.mark.parametrize("gone", ["anns", "also"])
def test_who_dies_as_one_goes_takes_nothing_from_the_other(tmp_path: Path, gone: str) -> None:
    """At whatever step; whoever comes next finds what he left, and the account is there.

    It takes seconds: each death is played in an installation of its own.
    """
    for steps in range(0, _CALLS, 7 * SHARE):
        fate = Fate()
        fleet, east = mortal(tmp_path / f"{steps}", fate)
        fleet.declare.delete([("RoleRequest", "", gone)])
        fate.doom(steps)
        died = False
        try:
            fleet.pump()
        except Killed:
            died = True
        fate.revive()
        fleet.reread()
        rig.release(fleet)
        settle(fleet)

        assert names(east) == GIVEN, steps
        assert names(east, ACCOUNT), steps
        fleet.close()
        if not died:
            return
    pytest.fail("it never came to its end")


def denied(fleet: Fleet) -> FakeKube:
    """Register a cluster that refuses a tenant's profile, after three hours of failures."""
    east = fleet.register("east", env="production")
    fleet.apply(ANNS, holder("own", config("a")), holder("roles", role()))
    for _ in range(12):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=15))
        rig.tick(fleet)
    fleet.pump()
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    assert found.value.retry_at
    assert found.value.retry_at - fleet.clock.now() > timedelta(minutes=10)
    return east


def test_a_death_after_the_last_right_leaves_nobody_denied(fleet: Fleet) -> None:
    """The next attempt changes nothing in the cluster, and retries the denied profile though."""
    east = denied(fleet)
    east.rbac.grant("team/ann", "ConfigMap")
    fleet.apply(request())

    kill_before_publishing(
        fleet.publisher,
        lambda each: isinstance(each, Apply) and each.profile == "own",
        fleet.pump,
    )
    rig.release(fleet)
    settle(fleet)

    now = fleet.records.outcomes.get(EAST, "own")
    assert now
    assert now.value.phase == "Provisioned"


def test_who_dies_giving_rights_leaves_nobody_denied(tmp_path: Path) -> None:
    """Though the last right was given and nobody was told yet: their pauses are long.

    It takes long: each death is played in an installation of its own, after three hours of
    failures.
    """
    for steps in range(0, _CALLS, 11 * SHARE):
        (tmp_path / f"{steps}").mkdir()
        fleet, fate = Fleet(tmp_path / f"{steps}"), Fate()
        east = denied(fleet)
        rig.interpose(fleet, lambda name, port, fate=fate: Mortal(name, port, fate))
        fleet.access.clusters = {EAST: east}

        east.rbac.grant("team/ann", "ConfigMap")
        fleet.apply(request())
        fate.doom(steps)
        died = False
        try:
            fleet.pump()
        except Killed:
            died = True
        fate.revive()
        fleet.reread()
        rig.release(fleet)
        settle(fleet)

        now = fleet.records.outcomes.get(EAST, "own")
        assert now, steps
        assert now.value.phase == "Provisioned", steps
        fleet.close()
        if not died:
            return
    pytest.fail("it never came to its end")
