"""What becomes of the rest of a profile when another has one of its objects."""

from __future__ import annotations

import pytest

from bellhop.core.gvk import GVK
from bellhop.state.worker_pool import WorkerPool
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
ON = "continueOnConflict: true"


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster in which a profile `first` has the object `shared`."""
    kube = fleet.register("east", env="production")
    fleet.apply(join(profile(name="first"), holder("first", config("shared", "by: first"))))
    fleet.pump()
    return kube


def second(*names: str, value: str = "second", more: str = "") -> str:
    objects = [config(name, f"by: {value}") for name in names]
    return join(profile(name="second", more=more), holder("second", *objects))


def made(kube: FakeKube, by: str = "second") -> set[str]:
    return {each["metadata"]["name"] for each in kube.objects(CONFIG) if each["data"]["by"] == by}


def outcome(fleet: Fleet) -> tuple[str, str]:
    found = fleet.records.outcomes.get(EAST, "second")
    assert found
    return found.value.reason, found.value.message


@pytest.mark.parametrize(
    "names", [("a", "shared", "z"), ("shared", "z"), ("a", "b", "c", "shared")]
)
@pytest.mark.parametrize("helpers", [0, 8])
def test_the_rest_is_not_begun(
    fleet: Fleet, east: FakeKube, names: tuple[str, ...], helpers: int
) -> None:
    """Without continueOnConflict nothing of the profile is applied, whoever is quickest."""
    fleet.hands = WorkerPool(helpers)
    fleet.reread()
    fleet.apply(second(*names))
    fleet.pump()

    assert made(east) == set()
    reason, message = outcome(fleet)
    assert reason == "Conflict"
    assert "profile 'first' of tier 100 has it" in message
    assert "nothing else of it is changed meanwhile: continueOnConflict would" in message
    inventory = fleet.records.inventories.get(EAST, "second")
    assert inventory is None or not inventory.value.held


@pytest.mark.parametrize("more", ["", ON])
def test_each_object_that_another_has_is_told(fleet: Fleet, east: FakeKube, more: str) -> None:
    """Whoever mends one conflict need not wait for the next sentence to find the others."""
    fleet.apply(holder("first", config("shared", "by: first"), config("too", "by: first")))
    fleet.pump()
    fleet.apply(second("shared", "too", "z", more=more))
    fleet.pump()

    reason, message = outcome(fleet)
    assert reason == "Conflict"
    assert message.count("profile 'first' of tier 100 has it") == 2
    assert "'default/shared'" in message
    assert "'default/too'" in message
    assert message.count("continueOnConflict") == (not more)
    assert made(east) == ({"z"} if more else set())


def test_with_continue_on_conflict_the_rest_is_applied(fleet: Fleet, east: FakeKube) -> None:
    """All but what another has is applied, and the conflict is told all the same."""
    fleet.apply(second("a", "shared", "z", more=ON))
    fleet.pump()

    assert made(east) == {"a", "z"}
    reason, message = outcome(fleet)
    assert reason == "Conflict"
    assert "continueOnConflict" not in message


def test_saying_so_later_lets_the_rest_go_on(fleet: Fleet, east: FakeKube) -> None:
    """The field counts from the moment it is declared, in both directions."""
    fleet.apply(second("a", "shared"))
    fleet.pump()
    fleet.apply(second("a", "shared", more=ON))
    fleet.pump()
    assert made(east) == {"a"}

    fleet.apply(second("a", "shared", "z"))
    fleet.pump()

    assert made(east) == {"a"}


def test_what_is_held_already_stays(fleet: Fleet, east: FakeKube) -> None:
    """A conflict that comes up changes nothing of what is applied, and removes nothing."""
    fleet.apply(second("a", "gone", value="old"))
    fleet.pump()

    fleet.apply(second("a", "shared"))
    fleet.pump()

    assert made(east, "old") == {"a", "gone"}
    assert made(east) == set()
    inventory = fleet.records.inventories.get(EAST, "second")
    assert inventory
    assert {key.name for key, held in inventory.value.held.items() if held.digest} == {"a", "gone"}


def test_the_rest_follows_once_the_object_is_free(fleet: Fleet, east: FakeKube) -> None:
    """Who waits is told, and brings everything."""
    fleet.apply(second("a", "shared"))
    fleet.pump()

    fleet.declare.delete([("ClusterProfile", "", "first")])
    fleet.pump()

    assert made(east) == {"a", "shared"}


def test_a_lower_tier_takes_the_object_and_the_rest(fleet: Fleet, east: FakeKube) -> None:
    """What may be taken is no conflict."""
    fleet.apply(second("a", "shared", more="tier: 50"))
    fleet.pump()

    assert made(east) == {"a", "shared"}
