"""Rights and what was written by them, deleted at the moment at which another acts, or one dies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bellhop.errors import TemporaryError
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.share import SHARE
from tests.unit.stages.test_revoking import (
    EAST,
    OWN,
    RIGHTS,
    granted,
    left_over,
    lose_messages,
    names,
    rights_first,
    tenant,
    there,
)
from tests.unit.stages.test_role_request_races import settle

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


def coming(folder: Path) -> tuple[Fleet, FakeKube]:
    """Return a fleet in which a tenant's profile is about to come to a cluster."""
    folder.mkdir()
    fleet = Fleet(folder)
    east = fleet.register("east", env="production")
    east.follow_bindings()
    fleet.apply(granted())
    fleet.pump()
    fleet.apply(tenant())
    made_so(fleet, "own")
    return fleet, east


def delete(fleet: Fleet, *known: str) -> None:
    """Delete both at once; some are made so by then."""
    fleet.declare.delete([RIGHTS, OWN])
    made_so(fleet, *known)


@pytest.mark.parametrize("known", [("RoleRequest:anns",), ("RoleRequest:anns", "own")])
def test_who_is_just_coming_leaves_nothing_behind(tmp_path: Path, known: Sequence[str]) -> None:
    """Whichever call of its first try it is before which both are deleted, and its rights go.

    And whether anybody has made it so by then that it is to leave.
    It takes seconds: it plays once for a share of the calls of the store.
    """
    for number in range(0, _CALLS, SHARE):
        fleet, east = coming(tmp_path / f"{number}")

        def overtake(fleet: Fleet = fleet) -> None:
            delete(fleet, *known)
            act(fleet, "RoleRequest:anns")

        with interrupted(fleet.records, number, overtake) as found:
            act(fleet, "own")
        if not found.met:
            fleet.close()
            return
        goes_well(fleet, east, number)
    pytest.fail("it never came to its end")


def test_who_comes_as_its_rights_go_leaves_nothing_behind(tmp_path: Path) -> None:
    """Whichever call of theirs it is before which it is brought, by a worker who was slow.

    It takes seconds: it plays once for a share of the calls of the store.
    """
    for number in range(0, _CALLS, SHARE):
        fleet, east = coming(tmp_path / f"{number}")
        delete(fleet, "RoleRequest:anns")
        with interrupted(fleet.records, number, lambda fleet=fleet: act(fleet, "own")) as found:
            act(fleet, "RoleRequest:anns")
        if not found.met:
            fleet.close()
            return
        goes_well(fleet, east, number)
    pytest.fail("it never came to its end")


def goes_well(fleet: Fleet, east: FakeKube, number: int) -> None:
    """See that nothing is left in the end."""
    fleet.publisher.publish([Resolve("own"), Apply("", "", "own", EAST)])
    settle(fleet)
    assert (names(east), there(east), left_over(fleet)) == ([], [], []), number
    fleet.close()


@pytest.mark.parametrize("who", ["own", "RoleRequest:anns"])
@pytest.mark.parametrize("number", range(0, 40, SHARE))
def test_rights_are_told_that_all_has_left(
    fleet: Fleet, east: FakeKube, who: str, number: int
) -> None:
    """Whoever of the two overtakes the other, at whichever call: no clock has to go on."""
    fleet.apply(granted(), tenant())
    fleet.pump()
    fleet.declare.delete([RIGHTS, OWN])
    made_so(fleet, "own", "RoleRequest:anns")
    [other] = {"own", "RoleRequest:anns"} - {who}

    with interrupted(fleet.records, number, lambda: act(fleet, other)) as found:
        act(fleet, who)
    if found.met:
        fleet.pump()
        assert (names(east), there(east), left_over(fleet)) == ([], [], [])


def test_who_comes_back_as_he_is_struck_out_is_known_again(fleet: Fleet, east: FakeKube) -> None:
    """Whoever was about to note that it has gone strikes nothing out that counts."""
    fleet.apply(granted(), tenant())
    fleet.pump()
    fleet.declare.delete([OWN])
    made_so(fleet, "own")
    strike = fleet.records.needing.delete

    def late(*args: Any) -> None:
        fleet.records.needing.delete = strike  # type: ignore[method-assign]
        fleet.apply(tenant())
        made_so(fleet, "own")
        act(fleet, "own")
        assert there(east) == ["own"]
        strike(*args)

    fleet.records.needing.delete = late  # type: ignore[method-assign]
    act(fleet, "own")
    fleet.declare.delete([RIGHTS, OWN])
    rights_first(fleet)
    fleet.pump()

    assert (names(east), there(east)) == ([], [])


def test_who_dies_as_both_go_leaves_nothing_behind(tmp_path: Path) -> None:
    """At whatever step, and whichever of the two is worked on first.

    It takes seconds: each death is played in an installation of its own.
    """
    for steps in range(0, _CALLS, 7 * SHARE):
        fate = Fate()
        (tmp_path / f"{steps}").mkdir()
        fleet = Fleet(tmp_path / f"{steps}")
        east = fleet.register("east", env="production")
        east.follow_bindings()
        fleet.apply(granted(), tenant())
        fleet.pump()
        rig.interpose(fleet, lambda name, port, fate=fate: Mortal(name, port, fate))
        fleet.access.clusters = {EAST: east}
        fleet.declare.delete([RIGHTS, OWN])
        fate.doom(steps)
        died = False
        try:
            rights_first(fleet)
            fleet.pump()
        except Killed:
            died = True
        fate.revive()
        fleet.reread()
        rig.release(fleet)
        settle(fleet)

        assert (names(east), there(east), left_over(fleet)) == ([], [], []), steps
        fleet.close()
        if not died:
            return
    pytest.fail("it never came to its end")
