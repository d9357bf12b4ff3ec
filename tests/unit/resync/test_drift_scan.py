"""Drift scans: deleted objects of profiles are applied again, and orphans are shown."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import DeniedError, UnreachableError
from bellhop.resync import kind_lister, owned_kinds
from bellhop.settings import Settings
from bellhop.state.deployment import Inventory
from bellhop.state.messages import ScanDrift
from tests.fakes.fleet import EAST, Fleet, OpenFleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile


def own(name: str, *places: str) -> str:
    """Return a profile of ConfigMaps, each named as namespace/name."""
    pairs = (place.split("/") for place in places)
    items = (config(item, 'v: "1"', namespace=namespace) for namespace, item in pairs)
    return join(profile(name=name), holder(name, *items))


@pytest.fixture(params=[timedelta(0), timedelta(seconds=20)], ids=["in turns", "at once"])
def fleet(
    open_fleet: OpenFleet, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    monkeypatch.setattr(kind_lister, "PAGE", 2)
    monkeypatch.setattr(owned_kinds, "_BATCH", 2)
    return open_fleet(Settings(turn=request.param))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster with two profiles of some ConfigMaps, and with one of others."""
    kube = fleet.register("east", env="production")
    fleet.deploy(own("one", "default/a", "made/b", "made-2/c"), own("two", "made/d", "made/e"))
    kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}})
    assert there(kube) == ["a", "b", "c", "d", "e", "theirs"]
    return kube


def there(kube: FakeKube) -> list[str]:
    return sorted(each["metadata"]["name"] for each in kube.objects(CONFIG))


def resync(fleet: Fleet, *, full: bool = False) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.resync(full=full)


def applied(kube: FakeKube) -> list[str]:
    """Name what was applied, each once: where another life is there, it takes two calls."""
    return list(dict.fromkeys(call.name for call in kube.calls if call.verb == "apply"))


def test_a_deleted_namespace_is_applied_again(fleet: Fleet, east: FakeKube) -> None:
    """The next resync restores all objects that profiles had in it, and changes no others."""
    east.drop(GVK("", "v1", "Namespace"), "", "made")
    assert there(east) == ["a", "c", "theirs"]
    east.calls.clear()

    resync(fleet)

    assert there(east) == ["a", "b", "c", "d", "e", "theirs"]
    assert {*applied(east)} == {"made", "b", "d", "e"}


def test_a_restored_cluster_gets_later_deployments_again(fleet: Fleet, east: FakeKube) -> None:
    """It is the same cluster by its uid, and no profile has changed."""
    backup = copy.deepcopy(east._objects)
    fleet.deploy(own("three", "default/new"))
    east._objects = backup

    resync(fleet)

    assert "new" in there(east)


def test_a_complete_inventory_costs_no_write(fleet: Fleet, east: FakeKube) -> None:
    """Nothing is applied, nor read one by one."""
    east.calls.clear()

    resync(fleet)

    assert applied(east) == []
    assert {call.gvk.kind for call in east.calls if call.verb == "get"} == {"Namespace"}


@pytest.mark.parametrize("stripped", [True, False], ids=["their labels are gone", "refused"])
def test_objects_that_cannot_be_listed_are_read_one_by_one(
    fleet: Fleet, east: FakeKube, *, stripped: bool
) -> None:
    """An object without our label, or of a denied kind, does not count as deleted."""
    if stripped:
        for each in east._objects.values():
            each["metadata"].pop("labels", None)
    else:
        east.fail_with(DeniedError("no right to list"), "list")
    east.drop(CONFIG, "made", "e")
    east.calls.clear()

    resync(fleet)

    assert there(east) == ["a", "b", "c", "d", "e", "theirs"]
    assert applied(east) == ["e"]


def test_an_object_that_may_not_be_read_is_not_deleted(fleet: Fleet, east: FakeKube) -> None:
    """Nor is one if the cluster does not answer."""
    for error in (DeniedError("no right to get"), UnreachableError("it does not answer")):
        east.fail_with(error, "get", "list")
        east.calls.clear()
        fleet.publisher.publish([ScanDrift(EAST)])
        fleet.pump()

        assert applied(east) == []
    assert fleet.queues["sweep"].list() == []


def test_an_object_created_in_its_place_stays_and_is_shown(fleet: Fleet, east: FakeKube) -> None:
    """It has another uid and none of our marks; when it goes, ours comes back."""
    east.drop(CONFIG, "made", "b")
    metadata = {"name": "b", "namespace": "made"}
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "2"}})

    resync(fleet)

    [(key, found)] = fleet.records.findings.of(EAST)
    assert (key.name, found.what, found.profile) == ("b", "foreign", "one")
    assert [e["data"]["v"] for e in east.objects(CONFIG) if e["metadata"]["name"] == "b"] == ["2"]

    east.drop(CONFIG, "made", "b")
    resync(fleet)
    assert [e["data"]["v"] for e in east.objects(CONFIG) if e["metadata"]["name"] == "b"] == ["1"]
    resync(fleet)
    assert list(fleet.records.findings.of(EAST)) == []


def reborn(kube: FakeKube, name: str, **data: str) -> None:
    """Create an object again as a backup of the cluster has it, marks included."""
    [found] = [each for each in kube.objects(CONFIG) if each["metadata"]["name"] == name]
    kube.drop(CONFIG, found["metadata"]["namespace"], name)
    kube.put({**found, "data": data})


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "read one by one"])
def test_an_object_restored_by_a_backup_is_ours_again(
    fleet: Fleet, east: FakeKube, *, listed: bool
) -> None:
    """Its content is restored, and it is deleted once it is not desired any more."""
    if not listed:
        east.fail_with(DeniedError("no right to list"), "list")
    reborn(east, "b", v="old")
    reborn(east, "d", v="old")
    east.calls.clear()

    resync(fleet)

    assert applied(east) == ["b", "d"]
    assert {each["data"]["v"] for each in east.objects(CONFIG) if "data" in each} == {"1"}
    assert list(fleet.records.findings.of(EAST)) == []
    east.calls.clear()
    resync(fleet)
    assert applied(east) == []
    fleet.declare.delete([("ClusterProfile", "", "one"), ("ClusterProfile", "", "two")])
    fleet.pump()
    assert there(east) == ["theirs"]


@pytest.mark.parametrize(
    ("applied_at", "again"),
    [
        pytest.param("2025-12-24T08:00:00Z", True, id="before it was made"),
        pytest.param("2026-01-01T11:59:59Z", False, id="by the same request"),
        pytest.param("2026-01-02T08:00:00Z", False, id="since"),
    ],
)
def test_an_object_shows_when_it_was_applied(
    fleet: Fleet, east: FakeKube, applied_at: str, *, again: bool
) -> None:
    """A backup restores its managers, too; an inventory is read only for an unusual object."""
    manager = {"manager": "bellhop", "operation": "Apply", "time": applied_at}
    reborn(east, "b", v="old")
    real = east.page

    def with_managers(gvk: GVK, **more: Any) -> Any:
        page = real(gvk, **more)
        for each in page.items:
            each["metadata"]["managedFields"] = [manager]
        return page

    east.page = with_managers  # type: ignore[method-assign]
    east.calls.clear()

    resync(fleet)

    assert applied(east) == (["b"] if again else [])


def test_a_profile_with_a_lease_is_left_to_its_worker(fleet: Fleet, east: FakeKube) -> None:
    """The resync after the lease has ended finds the objects that are still missing."""
    east.drop(CONFIG, "made", "e")
    kept = fleet.records.inventories.get(EAST, "two")
    assert kept
    until = fleet.clock.now() + timedelta(minutes=7)
    fleet.records.inventories.put(Inventory(EAST, "two", kept.value.held, "w", until))

    resync(fleet)
    assert "e" not in there(east)
    resync(fleet)
    assert "e" in there(east)


def test_a_deleted_kind_is_applied_again_with_its_definition(fleet: Fleet, east: FakeKube) -> None:
    """Only the scan finds it: a deleted definition deletes its objects without events."""
    bell = GVK("example.org", "v1", "Bell")
    served = Resource(bell, "bells", namespaced=True)
    east.serve(served)
    fleet.deploy(
        own("bells", "default/front").replace(
            "apiVersion: v1\n    kind: ConfigMap", "apiVersion: example.org/v1\n    kind: Bell"
        )
    )
    assert len(east.objects(bell)) == 1
    east.unserve(bell)
    resync(fleet)
    [outcome] = [each for each in fleet.records.outcomes.of(EAST) if each.profile == "bells"]
    assert outcome.phase == "Failed"

    east.serve(served)
    resync(fleet)

    assert len(east.objects(bell)) == 1


def forgotten(fleet: Fleet) -> None:
    """Lose what our own records have of a profile, as a restored backup does."""
    fleet.records.forget_holdings(EAST)
    for outcome in list(fleet.records.outcomes.of(EAST)):
        fleet.records.outcomes.delete(EAST, outcome.profile)
    for name in ("ConfigMap default", "ClusterProfile "):
        kind, _, namespace = name.partition(" ")
        for key in [each for each, _ in fleet.records.manifests.listed(kind)]:
            fleet.records.manifests.delete(kind, namespace, key.rpartition("/")[2])
    for each in list(fleet.records.profiles.heads("")):
        fleet.records.profiles.delete(each.trigger, each.cluster, each.name)
    fleet.records.catalog.change("clusters", "declared")


def test_an_orphan_is_recorded_and_stays(fleet: Fleet, east: FakeKube) -> None:
    """Objects of others, Sveltos too, are not ours; an object that is owned again is no orphan."""
    forgotten(fleet)
    marks = {
        "labels": {"projectsveltos.io/reason": "Resources"},
        "annotations": {"projectsveltos.io/owner-name": "of-sveltos"},
    }
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sv", **marks}})
    east.calls.clear()

    resync(fleet, full=True)

    found = dict(fleet.records.findings.of(EAST))
    assert {(key.name, each.what, each.profile) for key, each in found.items()} == {
        ("a", "stray", "one"),
        ("b", "stray", "one"),
        ("c", "stray", "one"),
        ("d", "stray", "two"),
        ("e", "stray", "two"),
    }
    assert "remove" not in {call.verb for call in east.calls}

    fleet.deploy(own("one", "default/a", "made/b", "made-2/c"))
    resync(fleet)
    assert {key.name for key, _ in fleet.records.findings.of(EAST)} == {"d", "e"}


def test_known_orphans_cost_nothing(fleet: Fleet, east: FakeKube) -> None:
    """So it is if another installation has objects in the cluster: each resync finds them."""
    forgotten(fleet)
    resync(fleet, full=True)
    orphans = dict(fleet.records.findings.of(EAST))
    assert len(orphans) == 5
    east.calls.clear()
    with_orphans = written_by_a_resync(fleet)

    assert dict(fleet.records.findings.of(EAST)) == orphans
    assert [call for call in east.calls if (call.verb, call.gvk) == ("get", CONFIG)] == []

    for key in orphans:
        east.drop(CONFIG, key.namespace, key.name)
    resync(fleet)
    assert written_by_a_resync(fleet) == with_orphans


def written_by_a_resync(fleet: Fleet) -> int:
    before = fleet.store.counts["put"]
    resync(fleet)
    return fleet.store.counts["put"] - before


@pytest.mark.usefixtures("east")
def test_an_orphan_is_recorded_as_long_as_it_exists(fleet: Fleet) -> None:
    """It keeps the time when it was found first."""
    forgotten(fleet)
    resync(fleet, full=True)
    orphans = dict(fleet.records.findings.of(EAST))

    for _ in range(5):
        fleet.clock.advance(timedelta(days=3))
        resync(fleet)

    assert dict(fleet.records.findings.of(EAST)) == orphans


def test_an_orphan_that_was_created_again_is_read_again(fleet: Fleet, east: FakeKube) -> None:
    """Another object of its name belongs to others."""
    forgotten(fleet)
    resync(fleet, full=True)
    [key] = [key for key, _ in fleet.records.findings.of(EAST) if key.name == "a"]
    theirs = {"apiVersion": "v1", "kind": "ConfigMap"}
    east.drop(CONFIG, key.namespace, "a")
    east.put({**theirs, "metadata": {"name": "a", "namespace": key.namespace}})

    resync(fleet)

    assert key not in dict(fleet.records.findings.of(EAST))


def meanwhile(kube: FakeKube, happens: Callable[[], None]) -> None:
    real, left = kube.page, [happens]

    def slow(gvk: GVK, **more: Any) -> Any:
        page = real(gvk, **more)
        while gvk == CONFIG and left:
            left.pop()()
        return page

    kube.page = slow  # type: ignore[method-assign]


def test_an_object_that_changes_during_a_scan_is_neither_lost_nor_an_orphan(
    fleet: Fleet, east: FakeKube
) -> None:
    """A profile is withdrawn and another one applied after the list was read."""

    def change() -> None:
        fleet.declare.delete([("ClusterProfile", "", "two")])
        fleet.apply(own("three", "made/f"))
        for name in ("deploy", "apply", "sweep") * 2:
            fleet.work(name, fleet.queues[name].receive(10, wait=timedelta(0)))

    meanwhile(east, change)
    fleet.publisher.publish([ScanDrift(EAST)])
    fleet.work("sweep", fleet.queues["sweep"].receive(1, wait=timedelta(0)))
    fleet.pump()

    assert there(east) == ["a", "b", "c", "f", "theirs"]
    assert list(fleet.records.findings.of(EAST)) == []
    assert applied(east).count("f") == 1


def test_a_scan_ends_although_lists_expire(fleet: Fleet, east: FakeKube) -> None:
    """A list that expires all the time is read again a few times, and then skipped."""
    real = east.page

    def forgetful(gvk: GVK, **more: Any) -> Any:
        east.expire()
        return real(gvk, **more)

    east.page = forgetful  # type: ignore[method-assign]

    fleet.publisher.publish([ScanDrift(EAST)])

    assert fleet.pump() < 20
    assert list(fleet.records.findings.of(EAST)) == []
    assert ObjectKey(CONFIG, "made", "b").identity in dict(fleet.records.owners.of(EAST))
