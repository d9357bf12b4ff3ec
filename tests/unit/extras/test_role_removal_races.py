"""Rights and what was written by them, deleted at the moment at which another acts, or one dies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from bellhop.errors import TemporaryError
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet
from tests.fakes.hooks import before_next
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.share import SHARE
from tests.unit.extras.test_role_removal import (
    OWN,
    RIGHTS,
    granted,
    left_over,
    lose_messages,
    rights_first,
    tenant,
)
from tests.unit.extras.test_role_requests import names

pytestmark = pytest.mark.rest

_CALLS = 800
"""More than any of these histories has."""


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    kube = fleet.register("east", env="production")
    kube.follow_bindings()
    return kube


def made_so(fleet: Fleet, *names: str) -> None:
    """Have profiles made what is declared, and nothing done about it in any cluster."""
    for name in names:
        fleet.stages["deploy"].handle(Resolve(name))
    lose_messages(fleet)


def act(fleet: Fleet, name: str) -> None:
    """Have one worker do what there is to do about a profile in the cluster, if he can now."""
    with suppress(TemporaryError):
        fleet.stages["deploy"].handle(Apply("", "", name, EAST))


def prepare(folder: Path) -> tuple[Fleet, FakeKube]:
    """Return a fleet in which a tenant's profile is about to come to a cluster."""
    folder.mkdir()
    fleet = Fleet(folder)
    east = fleet.register("east", env="production")
    east.follow_bindings()
    fleet.deploy(granted())
    fleet.apply(tenant())
    made_so(fleet, "own")
    return fleet, east


def delete(fleet: Fleet, *known: str) -> None:
    """Delete both at once; some are made so by then."""
    fleet.declare.delete([RIGHTS, OWN])
    made_so(fleet, *known)


@pytest.mark.parametrize("known", [("RoleRequest:anns",), ("RoleRequest:anns", "own")])
def test_who_is_just_coming_leaves_nothing_behind(tmp_path: Path, known: Sequence[str]) -> None:
    """Both are deleted, and the permissions are removed, before any call of its first attempt.

    And whether anybody has made it so by then that it is to leave.
    It takes seconds: it plays once for a share of the calls of the store.
    """
    for number in range(0, _CALLS, SHARE):
        fleet, east = prepare(tmp_path / f"{number}")

        def overtake(fleet: Fleet = fleet) -> None:
            delete(fleet, *known)
            act(fleet, "RoleRequest:anns")

        with interrupted(fleet.records, number, overtake) as found:
            act(fleet, "own")
        if not found.met:
            fleet.close()
            return
        require_nothing_left(fleet, east, number)
    pytest.fail("it never came to its end")


def test_who_comes_as_its_rights_go_leaves_nothing_behind(tmp_path: Path) -> None:
    """A slow worker deploys it before any call of the removal of its permissions.

    It takes seconds: it plays once for a share of the calls of the store.
    """
    for number in range(0, _CALLS, SHARE):
        fleet, east = prepare(tmp_path / f"{number}")
        delete(fleet, "RoleRequest:anns")
        with interrupted(fleet.records, number, lambda fleet=fleet: act(fleet, "own")) as found:
            act(fleet, "RoleRequest:anns")
        if not found.met:
            fleet.close()
            return
        require_nothing_left(fleet, east, number)
    pytest.fail("it never came to its end")


def require_nothing_left(fleet: Fleet, east: FakeKube, number: int) -> None:
    """See that nothing is left in the end."""
    fleet.publisher.publish([Resolve("own"), Apply("", "", "own", EAST)])
    rig.settle(fleet)
    assert (names(east), east.names(), left_over(fleet)) == ([], [], []), number
    fleet.close()


@pytest.mark.parametrize("who", ["own", "RoleRequest:anns"])
@pytest.mark.parametrize("number", range(0, 40, SHARE))
def test_a_role_request_is_notified_that_all_has_left(
    fleet: Fleet, east: FakeKube, who: str, number: int
) -> None:
    """No clock has to advance, whichever of the two overtakes the other at any call."""
    fleet.deploy(granted(), tenant())
    fleet.declare.delete([RIGHTS, OWN])
    made_so(fleet, "own", "RoleRequest:anns")
    [other] = {"own", "RoleRequest:anns"} - {who}

    with interrupted(fleet.records, number, lambda: act(fleet, other)) as found:
        act(fleet, who)
    if found.met:
        fleet.pump()
        assert (names(east), east.names(), left_over(fleet)) == ([], [], [])


def test_a_profile_that_comes_back_as_its_record_is_deleted_is_recorded_again(
    fleet: Fleet, east: FakeKube
) -> None:
    """The worker that ends the removal deletes no record that counts."""
    fleet.deploy(granted(), tenant())
    fleet.declare.delete([OWN])
    made_so(fleet, "own")

    def late() -> None:
        fleet.apply(tenant())
        made_so(fleet, "own")
        act(fleet, "own")
        assert east.names() == ["own"]

    before_next(fleet.records.needing, "delete", late)
    act(fleet, "own")
    fleet.declare.delete([RIGHTS, OWN])
    rights_first(fleet)
    fleet.pump()

    assert (names(east), east.names()) == ([], [])


def test_who_dies_as_both_go_leaves_nothing_behind(open_fleet: OpenFleet) -> None:
    """At whatever step, and whichever of the two is worked on first.

    It takes seconds: each death is played in an installation of its own.
    """
    for steps in range(0, _CALLS, 7 * SHARE):
        fleet = open_fleet()
        east = fleet.register("east", env="production")
        east.follow_bindings()
        fleet.deploy(granted(), tenant())
        fate = rig.make_mortal(fleet)
        fleet.declare.delete([RIGHTS, OWN])

        def work(fleet: Fleet = fleet) -> None:
            rights_first(fleet)
            fleet.pump()

        died = rig.kill(fleet, fate, steps, work)
        rig.settle(fleet)

        assert (names(east), east.names(), left_over(fleet)) == ([], [], []), steps
        if not died:
            return
    pytest.fail("it never came to its end")
