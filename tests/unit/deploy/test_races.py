"""Two at once: workers whose time ran out, and changes in the middle of somebody's work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import ObjectKey
from bellhop.errors import TemporaryError
from bellhop.state.deployment import Held, Inventory
from bellhop.state.messages import Apply, Resolve
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.hooks import after_next, before_next
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile


def own(*names: str) -> str:
    """Return a ClusterProfile that has ConfigMaps of these names."""
    return join(profile(), holder("own", *map(config, names)))


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
    """Both workers' objects are recorded, and the next try makes them the desired state."""
    fleet.apply(own("a", "b"))

    def lose_race() -> None:
        fleet.apply(own("a", "c"))
        fleet.stages["deploy"].handle(Resolve("own"))
        work_again(fleet)

    meanwhile(east, "b", lose_race)
    fleet.pump()
    fleet.wait(timedelta(seconds=2))

    assert east.names() == ["a", "c"]
    kept = require_value(fleet.records.inventories.get(EAST, "own"))
    assert {key.name: bool(each.digest) for key, each in kept.held.items()} == {
        "a": True,
        "c": True,
    }


@pytest.mark.usefixtures("east")
def test_an_overtaken_worker_keeps_what_others_write_while_it_notes_its_own(fleet: Fleet) -> None:
    """Objects that two workers recorded differently are uncertain; those that agree stay as is."""
    fleet.deploy(own("b"))
    inventories: Any = fleet.records.inventories
    put, others = inventories.put, iter(["x", "y"])
    noted: list[dict[str, Held]] = []

    def lose_race(inventory: Inventory, *, expect: str | None = None) -> str:
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

    inventories.put = lose_race
    fleet.deploy(own("a", "b"))

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

    def lose_race() -> None:
        there = require_value(fleet.records.inventories.get(EAST, "own"))
        taken = replace(there, worker=worker or there.worker)
        fleet.records.inventories.put(taken)

    meanwhile(east, "a", lose_race)
    fleet.pump()

    left = require_value(fleet.records.inventories.get(EAST, "own"))
    assert left.worker == worker


def test_a_slow_worker_leaves_nothing_of_a_profile_that_was_closed(
    fleet: Fleet, east: FakeKube
) -> None:
    """An object that is applied after the profile was withdrawn is removed by the next try."""
    fleet.apply(own("a", "b"))

    def withdrawn() -> None:
        fleet.declare.delete([("ClusterProfile", "", "own")])
        fleet.stages["deploy"].handle(Resolve("own"))
        work_again(fleet)

    meanwhile(east, "b", withdrawn)
    fleet.pump()
    fleet.wait(timedelta(seconds=2))

    assert east.names() == []
    assert list(fleet.records.inventories.of(EAST)) == []
    assert list(fleet.records.outcomes.of(EAST)) == []
    assert fleet.records.owners.get(EAST, ObjectKey(CONFIG, "default", "b").identity) is None


def test_a_worker_that_loses_the_last_write_logs_its_removals(fleet: Fleet, east: FakeKube) -> None:
    """The worker that begins again finds nothing to remove, and publishes nothing."""
    fleet.deploy(own("a"))
    outcomes: Any = fleet.records.outcomes
    delete = outcomes.delete

    def late(cluster: str, name: str, **how: Any) -> Any:
        outcomes.delete = delete
        kept = outcomes.get(cluster, name)
        outcomes.put(replace(kept.value, message="another's"), expect=kept.token)
        return delete(cluster, name, **how)

    outcomes.delete = late
    fleet.delete("ClusterProfile", "own")

    assert east.names() == []
    assert list(outcomes.of(EAST)) == []
    told = [entry.detail for entry in fleet.ledger() if entry.what == "removed"]
    assert told == ["ConfigMap a"]


def test_the_event_log_has_what_a_failed_attempt_removed(fleet: Fleet, east: FakeKube) -> None:
    """The store fails after the cluster has answered: the next attempt finds nothing to remove."""
    fleet.deploy(own("a"))
    inventories: Any = fleet.records.inventories
    put = inventories.put

    def fails(inventory: Inventory, **how: Any) -> Any:
        if inventory.worker:
            return put(inventory, **how)
        inventories.put = put
        raise TemporaryError("cannot write: the store does not answer")

    inventories.put = fails
    fleet.delete("ClusterProfile", "own")
    fleet.clock.advance(timedelta(minutes=5))
    fleet.schedule.tick()
    fleet.pump()

    assert east.names() == []
    assert list(inventories.of(EAST)) == []
    told = {entry.what: entry.detail for entry in fleet.ledger()}
    assert told["removed"] == "ConfigMap a"
    assert told["failed"] == "cannot write: the store does not answer"


def test_an_unpublished_withdrawal_is_published_by_the_next_worker(
    fleet: Fleet, east: FakeKube
) -> None:
    """The first one died between the profile and its messages."""
    fleet.deploy(own("a"))
    fleet.declare.delete([("ClusterProfile", "", "own")])
    publish = fleet.queues["apply"].publish

    def dies(_: object) -> None:
        raise SystemExit(9)

    fleet.queues["apply"].publish = dies  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        fleet.stages["deploy"].handle(Resolve("own"))
    fleet.queues["apply"].publish = publish  # type: ignore[method-assign]
    fleet.pump()

    assert east.names() == []


def test_who_writes_a_profile_late_forgets_no_cluster(fleet: Fleet) -> None:
    """A cluster that another worker deployed to meanwhile is known, and withdrawn from."""
    clusters = [fleet.register(name, env=name) for name in ("east", "west", "north")]

    def chosen(name: str) -> str:
        return own("a").replace("env: production", f"env: {name}")

    def late() -> None:
        fleet.apply(chosen("west"))
        fleet.wait(fleet.settings.visibility + timedelta(seconds=1))
        assert clusters[1].names() == ["a"]
        fleet.apply(chosen("north"))

    before_next(fleet.records.profiles, "put", late)
    fleet.deploy(chosen("east"))

    assert [each.names() for each in clusters] == [[], [], ["a"]]


def test_a_withdrawal_reaches_a_cluster_that_was_being_left(fleet: Fleet, east: FakeKube) -> None:
    """It corrects a death before the cluster was notified, too."""
    fleet.register("west", env="west")
    fleet.deploy(own("a"))
    fleet.apply(own("a").replace("env: production", "env: west"))
    publish = fleet.queues["apply"].publish

    def dies(_: object) -> None:
        raise SystemExit(9)

    fleet.queues["apply"].publish = dies  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        fleet.stages["deploy"].handle(Resolve("own"))
    fleet.queues["apply"].publish = publish  # type: ignore[method-assign]
    fleet.delete("ClusterProfile", "own")

    assert east.names() == []


def test_a_users_profile_is_made_from_what_is_declared_last(fleet: Fleet, east: FakeKube) -> None:
    """A worker that stalls after it has rendered gives way to one that found nothing to write."""
    fleet.deploy(own("a"))
    fleet.apply(own("b"))
    stage, resolution = fleet.stages["deploy"], fleet.resolution

    def stalls() -> None:
        fleet.apply(own("a"))
        fleet.wait(fleet.settings.visibility + timedelta(seconds=1))

    after_next(resolution, "render", stalls)
    stage.handle(Resolve("own"))
    fleet.pump()

    assert east.names() == ["a"]
