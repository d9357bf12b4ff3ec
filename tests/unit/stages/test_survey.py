"""What profiles hold in a cluster is put back when it is gone; what nobody holds is shown."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.errors import DeniedError, UnreachableError
from bellhop.resync import owned_kinds
from bellhop.settings import Settings
from bellhop.state.messages import Resync, ScanDrift
from bellhop.state.record import Inventory
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube

EAST = "fleet/east"
CONFIG = GVK("", "v1", "ConfigMap")
ITEM = """
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: {name}, namespace: {namespace}}}
    data: {{v: "1"}}
"""


def profile(name: str, *places: str) -> str:
    items = "    ---".join(
        ITEM.format(namespace=place.partition("/")[0], name=place.partition("/")[2])
        for place in places
    )
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, name: {name}, namespace: default}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data:
  main.yaml: |{items}
"""


@pytest.fixture(params=[timedelta(0), timedelta(seconds=20)], ids=["in turns", "at once"])
def fleet(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(owned_kinds, "PAGE", 2)
    monkeypatch.setattr(owned_kinds, "_ASKED", 2)
    return Fleet(tmp_path, Settings(turn=request.param))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A cluster with two profiles of some ConfigMaps, and with somebody else's."""
    kube = fleet.register("east", env="production")
    fleet.apply(
        profile("one", "default/a", "made/b", "made-2/c"), profile("two", "made/d", "made/e")
    )
    fleet.pump()
    kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}})
    assert there(kube) == ["a", "b", "c", "d", "e", "theirs"]
    return kube


def there(kube: FakeKube) -> list[str]:
    return sorted(each["metadata"]["name"] for each in kube.objects(CONFIG))


def sweep(fleet: Fleet, *, full: bool = False) -> None:
    fleet.clock.advance(timedelta(minutes=5))
    fleet.publisher.publish([Resync(EAST, full=full)])
    fleet.pump()


def applied(kube: FakeKube) -> list[str]:
    """Name what was applied, each once: where another life is there, it takes two calls."""
    return list(dict.fromkeys(call.name for call in kube.calls if call.verb == "apply"))


def test_a_namespace_that_somebody_deleted_is_put_back(fleet: Fleet, east: FakeKube) -> None:
    """With all that profiles had in it, by the next sweep; what is there is left as it is."""
    east.drop(GVK("", "v1", "Namespace"), "", "made")
    assert there(east) == ["a", "c", "theirs"]
    east.calls.clear()

    sweep(fleet)

    assert there(east) == ["a", "b", "c", "d", "e", "theirs"]
    assert {*applied(east)} == {"made", "b", "d", "e"}


def test_a_cluster_that_was_restored_gets_what_was_applied_since(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is the same cluster by its uid, and no profile has changed."""
    backup = copy.deepcopy(east._objects)
    fleet.apply(profile("three", "default/new"))
    fleet.pump()
    east._objects = backup

    sweep(fleet)

    assert "new" in there(east)


def test_what_is_all_there_costs_no_write(fleet: Fleet, east: FakeKube) -> None:
    """Nothing is applied, nor read one by one."""
    east.calls.clear()

    sweep(fleet)

    assert applied(east) == []
    assert {call.gvk.kind for call in east.calls if call.verb == "get"} == {"Namespace"}


@pytest.mark.parametrize("stripped", [True, False], ids=["their labels are gone", "refused"])
def test_what_cannot_be_listed_is_read_one_by_one(
    fleet: Fleet, east: FakeKube, *, stripped: bool
) -> None:
    """An object without our label, or a kind that may not be listed, is not taken for gone."""
    if stripped:
        for each in east._objects.values():
            each["metadata"].pop("labels", None)
    else:
        east.fail_with(DeniedError("no right to list"), "list")
    east.drop(CONFIG, "made", "e")
    east.calls.clear()

    sweep(fleet)

    assert there(east) == ["a", "b", "c", "d", "e", "theirs"]
    assert applied(east) == ["e"]


def test_who_may_not_read_does_not_take_anything_for_gone(fleet: Fleet, east: FakeKube) -> None:
    """Nor who gets no answer."""
    for error in (DeniedError("no right to get"), UnreachableError("it does not answer")):
        east.fail_with(error, "get", "list")
        east.calls.clear()
        fleet.publisher.publish([ScanDrift(EAST)])
        fleet.pump()

        assert applied(east) == []
    assert fleet.queues["sweep"].list() == []


def test_what_somebody_made_in_its_place_stays_and_is_told(fleet: Fleet, east: FakeKube) -> None:
    """It has another uid and none of our marks; when it goes, ours comes back."""
    east.drop(CONFIG, "made", "b")
    metadata = {"name": "b", "namespace": "made"}
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "2"}})

    sweep(fleet)

    [(key, finding)] = fleet.records.findings.of(EAST)
    assert (key.name, finding.what, finding.profile) == ("b", "foreign", "one")
    assert [e["data"]["v"] for e in east.objects(CONFIG) if e["metadata"]["name"] == "b"] == ["2"]

    east.drop(CONFIG, "made", "b")
    sweep(fleet)
    assert [e["data"]["v"] for e in east.objects(CONFIG) if e["metadata"]["name"] == "b"] == ["1"]
    sweep(fleet)
    assert list(fleet.records.findings.of(EAST)) == []


def reborn(kube: FakeKube, name: str, **data: str) -> None:
    """Make an object anew as a backup of the cluster has it, marks included."""
    [found] = [each for each in kube.objects(CONFIG) if each["metadata"]["name"] == name]
    kube.drop(CONFIG, found["metadata"]["namespace"], name)
    kube.put({**found, "data": data})


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "read one by one"])
def test_what_a_backup_brought_back_in_another_life_is_ours_again(
    fleet: Fleet, east: FakeKube, *, listed: bool
) -> None:
    """Its content is what is wanted, and it goes when it is wanted no more."""
    if not listed:
        east.fail_with(DeniedError("no right to list"), "list")
    reborn(east, "b", v="old")
    reborn(east, "d", v="old")
    east.calls.clear()

    sweep(fleet)

    assert applied(east) == ["b", "d"]
    assert {each["data"]["v"] for each in east.objects(CONFIG) if "data" in each} == {"1"}
    assert list(fleet.records.findings.of(EAST)) == []
    east.calls.clear()
    sweep(fleet)
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
def test_an_object_tells_itself_when_it_was_applied(
    fleet: Fleet, east: FakeKube, applied_at: str, *, again: bool
) -> None:
    """A backup brings its managers back, too; no inventory is read where nothing is odd."""
    manager = {"manager": "bellhop", "operation": "Apply", "time": applied_at}
    reborn(east, "b", v="old")
    real = east.page

    def telling(gvk: GVK, **more: Any) -> Any:
        page = real(gvk, **more)
        for each in page.items:
            each["metadata"]["managedFields"] = [manager]
        return page

    east.page = telling  # type: ignore[method-assign]
    east.calls.clear()

    sweep(fleet)

    assert applied(east) == (["b"] if again else [])


def test_what_a_worker_is_at_is_left_to_it(fleet: Fleet, east: FakeKube) -> None:
    """Its lease is respected; the sweep after it has ended sees what is still missing."""
    east.drop(CONFIG, "made", "e")
    kept = fleet.records.inventories.get(EAST, "two")
    assert kept
    until = fleet.clock.now() + timedelta(minutes=7)
    fleet.records.inventories.put(Inventory(EAST, "two", kept.value.held, "w", until))

    sweep(fleet)
    assert "e" not in there(east)
    sweep(fleet)
    assert "e" in there(east)


def test_a_kind_that_was_deleted_comes_back_with_its_definition(
    fleet: Fleet, east: FakeKube
) -> None:
    """Nothing says so but the survey: a definition takes its objects along in silence."""
    bell = GVK("example.org", "v1", "Bell")
    served = Resource(bell, "bells", namespaced=True)
    east.serve(served)
    fleet.apply(
        profile("bells", "default/front").replace(
            "apiVersion: v1\n    kind: ConfigMap", "apiVersion: example.org/v1\n    kind: Bell"
        )
    )
    fleet.pump()
    assert len(east.objects(bell)) == 1
    east.unserve(bell)
    sweep(fleet)
    [outcome] = [each for each in fleet.records.outcomes.of(EAST) if each.profile == "bells"]
    assert outcome.phase == "Failed"

    east.serve(served)
    sweep(fleet)

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


def test_what_bears_our_marks_and_nobody_holds_is_noted_and_stays(
    fleet: Fleet, east: FakeKube
) -> None:
    """What others made, Sveltos too, is not ours; once held again it is no stray."""
    forgotten(fleet)
    marks = {
        "labels": {"projectsveltos.io/reason": "Resources"},
        "annotations": {"projectsveltos.io/owner-name": "of-sveltos"},
    }
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sv", **marks}})
    east.calls.clear()

    sweep(fleet, full=True)

    found = dict(fleet.records.findings.of(EAST))
    assert {(key.name, each.what, each.profile) for key, each in found.items()} == {
        ("a", "stray", "one"),
        ("b", "stray", "one"),
        ("c", "stray", "one"),
        ("d", "stray", "two"),
        ("e", "stray", "two"),
    }
    assert "remove" not in {call.verb for call in east.calls}

    fleet.apply(profile("one", "default/a", "made/b", "made-2/c"))
    fleet.pump()
    sweep(fleet)
    assert {key.name for key, _ in fleet.records.findings.of(EAST)} == {"d", "e"}


def test_strays_that_are_known_cost_nothing(fleet: Fleet, east: FakeKube) -> None:
    """As where another installation has objects in the cluster: each sweep finds them."""
    forgotten(fleet)
    sweep(fleet, full=True)
    strays = dict(fleet.records.findings.of(EAST))
    assert len(strays) == 5
    east.calls.clear()
    with_strays = written_by_a_sweep(fleet)

    assert dict(fleet.records.findings.of(EAST)) == strays
    assert [call for call in east.calls if (call.verb, call.gvk) == ("get", CONFIG)] == []

    for key in strays:
        east.drop(CONFIG, key.namespace, key.name)
    sweep(fleet)
    assert written_by_a_sweep(fleet) == with_strays


def written_by_a_sweep(fleet: Fleet) -> int:
    before = fleet.store.counts["put"]
    sweep(fleet)
    return fleet.store.counts["put"] - before


@pytest.mark.usefixtures("east")
def test_a_stray_is_remembered_as_long_as_it_is_there(fleet: Fleet) -> None:
    """What sweeps find again and again is known since when it was found first."""
    forgotten(fleet)
    sweep(fleet, full=True)
    strays = dict(fleet.records.findings.of(EAST))

    for _ in range(5):
        fleet.clock.advance(timedelta(days=3))
        sweep(fleet)

    assert dict(fleet.records.findings.of(EAST)) == strays


def test_a_stray_that_lives_another_life_is_looked_at_anew(fleet: Fleet, east: FakeKube) -> None:
    """Somebody made another object of its name, which is theirs."""
    forgotten(fleet)
    sweep(fleet, full=True)
    [key] = [key for key, _ in fleet.records.findings.of(EAST) if key.name == "a"]
    theirs = {"apiVersion": "v1", "kind": "ConfigMap"}
    east.drop(CONFIG, key.namespace, "a")
    east.put({**theirs, "metadata": {"name": "a", "namespace": key.namespace}})

    sweep(fleet)

    assert key not in dict(fleet.records.findings.of(EAST))


def meanwhile(kube: FakeKube, happens: Callable[[], None]) -> None:
    real, left = kube.page, [happens]

    def slow(gvk: GVK, **more: Any) -> Any:
        page = real(gvk, **more)
        while gvk == CONFIG and left:
            left.pop()()
        return page

    kube.page = slow  # type: ignore[method-assign]


def test_what_comes_and_goes_during_a_survey_is_neither_gone_nor_stray(
    fleet: Fleet, east: FakeKube
) -> None:
    """A profile is withdrawn and another one applied after the list was read."""

    def change() -> None:
        fleet.declare.delete([("ClusterProfile", "", "two")])
        fleet.apply(profile("three", "made/f"))
        for name in ("deploy", "apply", "sweep") * 2:
            fleet.work(name, fleet.queues[name].receive(10, wait=timedelta(0)))

    meanwhile(east, change)
    fleet.publisher.publish([ScanDrift(EAST)])
    fleet.work("sweep", fleet.queues["sweep"].receive(1, wait=timedelta(0)))
    fleet.pump()

    assert there(east) == ["a", "b", "c", "f", "theirs"]
    assert list(fleet.records.findings.of(EAST)) == []
    assert applied(east).count("f") == 1


def test_a_survey_has_an_end_though_lists_are_forgotten(fleet: Fleet, east: FakeKube) -> None:
    """A list that expires all the time is begun anew a few times, and then left."""
    real = east.page

    def forgetful(gvk: GVK, **more: Any) -> Any:
        east.expire()
        return real(gvk, **more)

    east.page = forgetful  # type: ignore[method-assign]

    fleet.publisher.publish([ScanDrift(EAST)])

    assert fleet.pump() < 20
    assert list(fleet.records.findings.of(EAST)) == []
    assert ObjectKey(CONFIG, "made", "b").identity in dict(fleet.records.owners.of(EAST))
