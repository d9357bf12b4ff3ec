"""Add-ons end as the last apply says, also before a worker has reconciled it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK
from bellhop.declarations.end_behavior import note_endings
from bellhop.errors import MissingError
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile, source, trigger
from tests.fakes.mortal import Killed
from tests.fakes.share import SHARE

STAYING = ["stopMatchingBehavior: LeavePolicies", "syncMode: DryRun"]
Declaring = Callable[[str], str]


def own(more: str) -> str:
    return profile(more=more)


def made(more: str) -> str:
    return trigger(one="false", ref="own", more=more)


def for_each(more: str) -> str:
    return trigger(ref="own", more=more)


DECLARED: dict[str, tuple[Declaring, tuple[str, str, str]]] = {
    "a profile": (own, ("ClusterProfile", "", "own")),
    "a trigger": (made, ("EventTrigger", "", "made")),
    "a trigger for each": (for_each, ("EventTrigger", "", "made")),
}


def deployed(fleet: Fleet, east: FakeKube, text: str) -> None:
    fleet.deploy(source(), holder("own", config("a")), text)
    fleet.write("east", service("web"))
    fleet.pump()
    assert east.names() == ["a"]


@pytest.mark.parametrize("more", STAYING)
@pytest.mark.parametrize("name", DECLARED)
def test_a_deletion_before_a_change_that_keeps_the_add_ons_is_reconciled(
    fleet: Fleet, east: FakeKube, name: str, more: str
) -> None:
    """They stay, and have no owner any more."""
    declare, key = DECLARED[name]
    deployed(fleet, east, declare(""))

    fleet.apply(declare(more))
    fleet.declare.delete([key])
    fleet.pump()

    assert east.names() == ["a"]
    assert list(fleet.records.inventories.of("fleet/east")) == []
    assert list(fleet.records.profiles.of("")) == list(fleet.records.profiles.of("made")) == []


@pytest.mark.parametrize("more", STAYING)
@pytest.mark.parametrize("name", DECLARED)
def test_a_deletion_before_a_change_that_removes_the_add_ons_is_reconciled(
    fleet: Fleet, east: FakeKube, name: str, more: str
) -> None:
    """They go, as it was declared last."""
    declare, key = DECLARED[name]
    deployed(fleet, east, declare(""))
    fleet.deploy(declare(more))

    fleet.apply(declare(""))
    fleet.declare.delete([key])
    fleet.pump()

    assert east.names() == []


def test_an_event_ends_before_the_trigger_is_worked_on(fleet: Fleet, east: FakeKube) -> None:
    """Its add-ons stay, too: the trigger is asked, not the profile that it made before."""
    deployed(fleet, east, made(""))
    [web] = east.objects(GVK("", "v1", "Service"))

    fleet.apply(made(STAYING[0]))
    fleet.drop("east", web)
    fleet.pump()

    assert east.names() == ["a"]


@pytest.mark.rest
@pytest.mark.parametrize("name", DECLARED)
def test_a_deletion_dies_at_any_step(tmp_path: Path, name: str) -> None:
    """The add-ons stay, whether it was made or is made again."""
    declare, key = DECLARED[name]
    for steps in range(1, 60, 7 * SHARE):
        fleet = Fleet(tmp_path / f"{steps}")
        east = fleet.register("east", env="production")
        deployed(fleet, east, declare(""))
        fate = rig.make_mortal(fleet)

        fleet.apply(declare(STAYING[0]))
        fate.doom(steps)
        with suppress(Killed):
            fleet.declare.delete([key])
        fate.revive()
        fleet.reread()
        rig.release(fleet)
        fleet.clock.advance(timedelta(seconds=130))
        rig.tick(fleet)
        fleet.pump()
        assert east.names() == ["a"]

        with suppress(MissingError):
            fleet.declare.delete([key])
        fleet.pump()
        assert east.names() == ["a"]
        assert list(fleet.records.inventories.of("fleet/east")) == []
        fleet.close()


@pytest.mark.parametrize("name", DECLARED)
def test_a_deletion_that_never_came_to_pass(fleet: Fleet, east: FakeKube, name: str) -> None:
    """A profile that noted how it ends, and does not, takes its clusters to what is declared."""
    declare, key = DECLARED[name]
    deployed(fleet, east, declare(""))
    fleet.apply(declare(STAYING[1]), holder("own", config("a"), config("b")))

    note_endings(fleet.records, fleet.catalogs.current(), [key])
    fleet.pump()

    assert {each.phase for each in fleet.records.outcomes.of("fleet/east")} == {"DryRun"}
