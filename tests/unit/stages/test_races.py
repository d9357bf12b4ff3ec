"""Two at once: workers whose time ran out, and changes in the middle of somebody's work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import TemporaryError
from bellhop.state.messages import Apply, Resolve
from bellhop.state.record import Held, Inventory
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"


def own(*names: str) -> str:
    """Return a ClusterProfile that wants ConfigMaps of these names."""
    return join(profile(), holder("own", *map(config, names)))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def names(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(CONFIG)]


def meanwhile(kube: FakeKube, name: str, act: Callable[[], None]) -> None:
    """Let something happen once, right before an object is applied."""
    apply = kube.apply

    def late(manifest: dict[str, Any], **how: Any) -> Any:
        if manifest["metadata"]["name"] == name:
            kube.apply = apply  # type: ignore[method-assign]
            act()
        return apply(manifest, **how)

    kube.apply = late  # type: ignore[assignment, method-assign]


def work_again(fleet: Fleet) -> None:
    """Do what other workers do when a message's time is up, and the lease with it."""
    fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
    fleet.stages["deploy"].handle(Apply("", "", "own", EAST))


def test_a_slow_worker_loses_nothing_that_a_quicker_one_did(fleet: Fleet, east: FakeKube) -> None:
    """What both did is recorded, and the next try brings it to what is wanted now."""
    fleet.apply(own("a", "b"))

    def overtaken() -> None:
        fleet.apply(own("a", "c"))
        fleet.stages["deploy"].handle(Resolve("own"))
        work_again(fleet)

    meanwhile(east, "b", overtaken)
    fleet.pump()
    fleet.clock.advance(timedelta(seconds=2))
    fleet.pump()

    assert names(east) == ["a", "c"]
    kept = fleet.records.inventories.get(EAST, "own")
    assert kept
    assert {key.name: bool(each.digest) for key, each in kept.value.held.items()} == {
        "a": True,
        "c": True,
    }


@pytest.mark.usefixtures("east")
def test_an_overtaken_worker_keeps_what_others_write_while_it_notes_its_own(fleet: Fleet) -> None:
    """Objects that two workers recorded differently are uncertain; those that agree stay as is."""
    fleet.apply(own("b"))
    fleet.pump()
    inventories: Any = fleet.records.inventories
    put, others = inventories.put, iter(["x", "y"])
    noted: list[dict[str, Held]] = []

    def overtaken(inventory: Inventory, *, expect: str | None = None) -> str:
        if not inventory.worker and (name := next(others, "")):
            there = inventories.get(EAST, "own").value
            key = ObjectKey(CONFIG, "default", name).identity
            held = {**there.held, key: Held("theirs", "ConfigMap default/own", uid="theirs")}
            put(replace(there, held=held))
        token: str = put(inventory, expect=expect)
        if not inventory.worker:
            held = inventories.get(EAST, "own").value.held
            noted.append({key.name: each for key, each in held.items()})
        return token

    inventories.put = overtaken
    fleet.apply(own("a", "b"))
    fleet.pump()

    certain = {
        name: (bool(each.digest), bool(each.uid), each.secret) for name, each in noted[0].items()
    }
    unsure = (False, False, True)
    assert certain == {"a": unsure, "b": (True, True, False), "x": unsure, "y": unsure}


@pytest.mark.parametrize("worker", ["another", ""], ids=["another's", "its own"])
def test_an_overtaken_worker_ends_its_own_lease_and_no_other(
    fleet: Fleet, east: FakeKube, worker: str
) -> None:
    """Otherwise two workers would write at once, or the next one would wait for nobody."""
    fleet.apply(own("a"))

    def overtaken() -> None:
        there = fleet.records.inventories.get(EAST, "own")
        assert there
        taken = replace(there.value, worker=worker or there.value.worker)
        fleet.records.inventories.put(taken)

    meanwhile(east, "a", overtaken)
    fleet.pump()

    left = fleet.records.inventories.get(EAST, "own")
    assert left
    assert left.value.worker == worker


def test_a_slow_worker_leaves_nothing_of_a_profile_that_was_closed(
    fleet: Fleet, east: FakeKube
) -> None:
    """What is applied after the profile was withdrawn elsewhere is removed by the next try."""
    fleet.apply(own("a", "b"))

    def withdrawn() -> None:
        fleet.declare.delete([("ClusterProfile", "", "own")])
        fleet.stages["deploy"].handle(Resolve("own"))
        work_again(fleet)

    meanwhile(east, "b", withdrawn)
    fleet.pump()
    fleet.clock.advance(timedelta(seconds=2))
    fleet.pump()

    assert names(east) == []
    assert list(fleet.records.inventories.of(EAST)) == []
    assert list(fleet.records.outcomes.of(EAST)) == []
    assert fleet.records.owners.get(EAST, ObjectKey(CONFIG, "default", "b").identity) is None


def test_who_is_overtaken_in_the_end_tells_what_it_has_done(fleet: Fleet, east: FakeKube) -> None:
    """Whoever begins anew finds nothing to remove, and tells of nothing."""
    fleet.apply(own("a"))
    fleet.pump()
    outcomes: Any = fleet.records.outcomes
    delete = outcomes.delete

    def late(cluster: str, name: str, **how: Any) -> Any:
        outcomes.delete = delete
        kept = outcomes.get(cluster, name)
        outcomes.put(replace(kept.value, message="another's"), expect=kept.token)
        return delete(cluster, name, **how)

    outcomes.delete = late
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == []
    assert list(outcomes.of(EAST)) == []
    told = [entry.detail for entry in fleet.ledger() if entry.what == "removed"]
    assert told == ["ConfigMap a"]


def test_the_event_log_has_what_a_failed_attempt_removed(fleet: Fleet, east: FakeKube) -> None:
    """The store fails after the cluster has answered: the next attempt finds nothing to remove."""
    fleet.apply(own("a"))
    fleet.pump()
    inventories: Any = fleet.records.inventories
    put = inventories.put

    def fails(inventory: Inventory, **how: Any) -> Any:
        if inventory.worker:
            return put(inventory, **how)
        inventories.put = put
        raise TemporaryError("cannot write: the store does not answer")

    inventories.put = fails
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    fleet.clock.advance(timedelta(minutes=5))
    fleet.schedule.tick()
    fleet.pump()

    assert names(east) == []
    assert list(inventories.of(EAST)) == []
    told = {entry.what: entry.detail for entry in fleet.ledger()}
    assert told["removed"] == "ConfigMap a"
    assert told["failed"] == "cannot write: the store does not answer"


def test_a_withdrawal_that_nobody_was_told_of_is_told(fleet: Fleet, east: FakeKube) -> None:
    """Who dies between the profile and its messages is followed by one who sends them."""
    fleet.apply(own("a"))
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    publish = fleet.queues["apply"].publish

    def dies(_: object) -> None:
        raise SystemExit(9)

    fleet.queues["apply"].publish = dies  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        fleet.stages["deploy"].handle(Resolve("own"))
    fleet.queues["apply"].publish = publish  # type: ignore[method-assign]
    fleet.pump()

    assert names(east) == []


def test_who_writes_a_profile_late_forgets_no_cluster(fleet: Fleet) -> None:
    """What another worker brought to a cluster meanwhile is known of, and withdrawn from there."""
    clusters = [fleet.register(name, env=name) for name in ("east", "west", "north")]

    def chosen(name: str) -> str:
        return own("a").replace("env: production", f"env: {name}")

    put = fleet.records.profiles.put

    def late(*args: Any, **kwargs: Any) -> str:
        fleet.records.profiles.put = put  # type: ignore[method-assign]
        fleet.apply(chosen("west"))
        fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
        fleet.pump()
        assert names(clusters[1]) == ["a"]
        fleet.apply(chosen("north"))
        return put(*args, **kwargs)

    fleet.records.profiles.put = late  # type: ignore[method-assign]
    fleet.apply(chosen("east"))
    fleet.pump()

    assert [names(each) for each in clusters] == [[], [], ["a"]]


def test_a_cluster_that_was_being_left_is_told_of_the_withdrawal(
    fleet: Fleet, east: FakeKube
) -> None:
    """Who dies before it tells a cluster to be left is made good by the withdrawal, too."""
    fleet.register("west", env="west")
    fleet.apply(own("a"))
    fleet.pump()
    fleet.apply(own("a").replace("env: production", "env: west"))
    publish = fleet.queues["apply"].publish

    def dies(_: object) -> None:
        raise SystemExit(9)

    fleet.queues["apply"].publish = dies  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        fleet.stages["deploy"].handle(Resolve("own"))
    fleet.queues["apply"].publish = publish  # type: ignore[method-assign]
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == []


def test_a_users_profile_is_made_from_what_is_declared_last(fleet: Fleet, east: FakeKube) -> None:
    """A worker that stalls after it has rendered gives way to one that found nothing to write."""
    fleet.apply(own("a"))
    fleet.pump()
    fleet.apply(own("b"))
    stage: Any = fleet.stages["deploy"]
    resolution = stage._resolution
    real = resolution._declared

    def stalls(*args: Any) -> Any:
        resolution._declared = real
        made = real(*args)
        fleet.apply(own("a"))
        fleet.clock.advance(fleet.settings.visibility + timedelta(seconds=1))
        fleet.pump()
        return made

    resolution._declared = stalls
    stage.handle(Resolve("own"))
    fleet.pump()

    assert names(east) == ["a"]
