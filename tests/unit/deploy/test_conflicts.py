"""Other objects of a profile, if another profile owns one of its objects."""

from __future__ import annotations

import pytest

from bellhop.state.worker_pool import WorkerPool
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile

ON = "continueOnConflict: true"


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which a profile `first` has the object `shared`."""
    kube = fleet.register("east", env="production")
    fleet.deploy(join(profile(name="first"), holder("first", config("shared", "by: first"))))
    return kube


def second(*names: str, value: str = "second", more: str = "") -> str:
    objects = [config(name, f"by: {value}") for name in names]
    return join(profile(name="second", more=more), holder("second", *objects))


def made(kube: FakeKube, by: str = "second") -> set[str]:
    return {each["metadata"]["name"] for each in kube.objects(CONFIG) if each["data"]["by"] == by}


def outcome(fleet: Fleet) -> tuple[str, str]:
    found = fleet.status_of("second")
    return found.reason, found.message


@pytest.mark.parametrize(
    "names", [("a", "shared", "z"), ("shared", "z"), ("a", "b", "c", "shared")]
)
@pytest.mark.parametrize("helpers", [0, 8])
def test_the_rest_is_not_begun(
    fleet: Fleet, east: FakeKube, names: tuple[str, ...], helpers: int
) -> None:
    """Without continueOnConflict nothing of the profile is applied, whichever worker is first."""
    fleet.hands = WorkerPool(helpers)
    fleet.reread()
    fleet.deploy(second(*names))

    assert made(east) == set()
    reason, message = outcome(fleet)
    assert reason == "Conflict"
    assert "profile 'first' of tier 100 has it" in message
    assert "nothing else of it is changed meanwhile: continueOnConflict would" in message
    inventory = fleet.records.inventories.get(EAST, "second")
    assert inventory is None or not inventory.value.held


@pytest.mark.parametrize("more", ["", ON])
def test_each_object_in_conflict_is_reported(fleet: Fleet, east: FakeKube, more: str) -> None:
    """One message names all conflicts, so that a user need not correct them one by one."""
    fleet.deploy(holder("first", config("shared", "by: first"), config("too", "by: first")))
    fleet.deploy(second("shared", "too", "z", more=more))

    reason, message = outcome(fleet)
    assert reason == "Conflict"
    assert message.count("profile 'first' of tier 100 has it") == 2
    assert "'default/shared'" in message
    assert "'default/too'" in message
    assert message.count("continueOnConflict") == (not more)
    assert made(east) == ({"z"} if more else set())


def test_with_continue_on_conflict_the_rest_is_applied(fleet: Fleet, east: FakeKube) -> None:
    """All objects but the conflicting one are applied, and the conflict is reported."""
    fleet.deploy(second("a", "shared", "z", more=ON))

    assert made(east) == {"a", "z"}
    reason, message = outcome(fleet)
    assert reason == "Conflict"
    assert "continueOnConflict" not in message


def test_saying_so_later_lets_the_rest_go_on(fleet: Fleet, east: FakeKube) -> None:
    """The field counts from the moment it is declared, in both directions."""
    fleet.deploy(second("a", "shared"))
    fleet.deploy(second("a", "shared", more=ON))
    assert made(east) == {"a"}

    fleet.deploy(second("a", "shared", "z"))

    assert made(east) == {"a"}


def test_what_is_held_already_stays(fleet: Fleet, east: FakeKube) -> None:
    """A conflict that comes up changes nothing of what is applied, and removes nothing."""
    fleet.deploy(second("a", "gone", value="old"))

    fleet.deploy(second("a", "shared"))

    assert made(east, "old") == {"a", "gone"}
    assert made(east) == set()
    inventory = require_value(fleet.records.inventories.get(EAST, "second"))
    assert {key.name for key, held in inventory.held.items() if held.digest} == {"a", "gone"}


def test_the_rest_follows_once_the_object_is_free(fleet: Fleet, east: FakeKube) -> None:
    """A profile that waits is published to when the owner leaves, and deploys everything."""
    fleet.deploy(second("a", "shared"))

    fleet.delete("ClusterProfile", "first")

    assert made(east) == {"a", "shared"}


def test_a_lower_tier_takes_the_object_and_the_rest(fleet: Fleet, east: FakeKube) -> None:
    """An object that it may take is no conflict."""
    fleet.deploy(second("a", "shared", more="tier: 50"))

    assert made(east) == {"a", "shared"}
