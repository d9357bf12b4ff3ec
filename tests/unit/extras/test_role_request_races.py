"""Two RoleRequests for one account, at the moments at which another is quicker, or one dies."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile
from tests.fakes.mortal import kill_before_publishing
from tests.fakes.share import SHARE
from tests.unit.extras.test_role_requests import ACCOUNT, GIVEN, names, request, role, subjects

pytestmark = pytest.mark.rest

ANNS = profile().replace(
    "metadata: {", f"metadata: {{labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, "
)
_CALLS = 400
"""More than any of these histories has."""


def leave(fleet: Fleet, name: str) -> None:
    """Delete a RoleRequest, and have one worker do all that follows in the cluster."""
    fleet.declare.delete([("RoleRequest", "", name)])
    deploy = fleet.stages["deploy"]
    deploy.handle(Resolve(f"RoleRequest:{name}"))
    deploy.handle(Apply("", "", f"RoleRequest:{name}", EAST))


@pytest.mark.parametrize("number", range(0, 40, 2))
def test_who_comes_while_another_goes_has_the_account(fleet: Fleet, number: int) -> None:
    """The other one is removed before any call of its deployment."""
    east = fleet.register("east", env="production")
    fleet.deploy(request("first"), holder("roles", role()))
    fleet.apply(request())
    deploy = fleet.stages["deploy"]
    deploy.handle(Resolve("RoleRequest:anns"))

    with interrupted(fleet.records, number, lambda: leave(fleet, "first")) as found:
        deploy.handle(Apply("", "", "RoleRequest:anns", EAST))
    if not found.met:
        leave(fleet, "first")
    rig.settle(fleet)

    assert names(east) == GIVEN
    assert subjects(east) == [("team/ann", "writes")]
    leave(fleet, "anns")
    rig.settle(fleet)
    assert names(east) == []


@pytest.mark.parametrize("gone", ["anns", "also"])
def test_who_dies_as_one_goes_takes_nothing_from_the_other(
    open_fleet: OpenFleet, gone: str
) -> None:
    """At any step; the next worker continues, and the account is there.

    It takes seconds: each death is played in an installation of its own.
    """
    for steps in range(0, _CALLS, 7 * SHARE):
        fleet = open_fleet()
        east = fleet.register("east", env="production")
        fleet.deploy(request(), request("also"), holder("roles", role()))
        fate = rig.make_mortal(fleet)
        fleet.declare.delete([("RoleRequest", "", gone)])
        died = rig.kill(fleet, fate, steps)
        rig.settle(fleet)

        assert names(east) == GIVEN, steps
        assert names(east, ACCOUNT), steps
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
    found = fleet.status_of()
    assert found.retry_at
    assert found.retry_at - fleet.clock.now() > timedelta(minutes=10)
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
    rig.settle(fleet)

    now = fleet.status_of()
    assert now.phase == "Provisioned"


def test_who_dies_giving_rights_leaves_nobody_denied(open_fleet: OpenFleet) -> None:
    """The last permission was given and no profile was notified yet: their pauses are long.

    It takes long: each death is played in an installation of its own, after three hours of
    failures.
    """
    for steps in range(0, _CALLS, 11 * SHARE):
        fleet = open_fleet()
        east = denied(fleet)
        fate = rig.make_mortal(fleet)
        east.rbac.grant("team/ann", "ConfigMap")
        fleet.apply(request())
        died = rig.kill(fleet, fate, steps)
        rig.settle(fleet)

        assert fleet.status_of().phase == "Provisioned", steps
        if not died:
            return
    pytest.fail("it never came to its end")
