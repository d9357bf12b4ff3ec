"""Redeployment by hand, and removal of orphans."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import list_failures
from bellhop.diagnosis.orphans import list_orphans, remove_orphans
from bellhop.errors import MissingError
from bellhop.installation import Inbound, Installation
from bellhop.operations.redeployment import redeploy
from bellhop.state.deployment import Inventory
from bellhop.state.messages import Resync
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

EAST = "fleet/east"
CONFIG = GVK("", "v1", "ConfigMap")
DECLARED = join(profile(), holder("own", config("a", 'v: "1"'), config("b")))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """One profile in two clusters."""
    one = Fleet(tmp_path)
    one.register("east", env="production")
    one.register("west", env="production")
    one.apply(DECLARED)
    one.pump()
    yield one
    one.close()


@pytest.fixture
def here(fleet: Fleet) -> Installation:
    """The installation as commands see it, without secrets."""
    secrets: Any = None
    return Installation(
        settings=fleet.settings,
        records=fleet.records,
        catalogs=fleet.catalogs,
        declare=fleet.declare,
        secrets=secrets,
        access=fleet.access,
        reach=LOCAL,
        publisher=fleet.publisher,
        dead={},
        inbound=Inbound("", ""),
    )


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.access.clusters[EAST]


def applied(kube: FakeKube) -> list[str]:
    """Name what was applied, each once: what is unsure is made, or looked at and written to."""
    return list(dict.fromkeys(call.name for call in kube.calls if call.verb == "apply"))


def change(kube: FakeKube) -> None:
    """Change an applied object, as a person with kubectl would."""
    kube._objects[next(k for k in kube._objects if k.name == "a")]["data"] = {"v": "changed"}


@pytest.mark.parametrize("asked", [{}, {"profile": "own"}, {"cluster": EAST}], ids=str)
def test_what_is_held_is_applied_again(
    fleet: Fleet, here: Installation, east: FakeKube, asked: dict[str, str]
) -> None:
    """All of a profile, of a cluster, or everything; what others changed is as it was."""
    change(east)
    for kube in fleet.access.clusters.values():
        kube.calls.clear()

    done = redeploy(here, **asked)
    fleet.pump()

    assert (applied(east), east.objects(CONFIG)[0]["data"]) == (["a", "b"], {"v": "1"})
    everywhere = [] if "cluster" in asked else ["a", "b"]
    assert applied(fleet.access.clusters["fleet/west"]) == everywhere
    assert len(done) == (1 if "cluster" in asked else 2)
    assert not any(each.busy for each in done)


def test_what_a_worker_is_at_is_said_to_be(fleet: Fleet, here: Installation) -> None:
    """Its inventory is its own until it has ended."""
    kept = fleet.records.inventories.get(EAST, "own")
    assert kept
    until = fleet.clock.now() + timedelta(minutes=1)
    fleet.records.inventories.put(Inventory(EAST, "own", kept.value.held, "w", until))

    assert {each.cluster for each in redeploy(here) if each.busy} == {EAST}


def test_what_is_not_there_is_not_applied_again(here: Installation) -> None:
    """A profile or a cluster of which nothing is known is named."""
    with pytest.raises(MissingError, match="'other': it is not in any cluster"):
        redeploy(here, "other")
    with pytest.raises(MissingError, match="'fleet/north': it is not registered"):
        redeploy(here, cluster="fleet/north")
    with pytest.raises(MissingError, match="'fleet/north': it is not registered"):
        list(remove_orphans(here, "fleet/north"))


@pytest.fixture
def lost(fleet: Fleet, here: Installation) -> Installation:
    """An installation that was restored from before its profile came."""
    for cluster in (EAST, "fleet/west"):
        fleet.records.forget_holdings(cluster)
        fleet.records.outcomes.forget(cluster)
    fleet.records.profiles.delete("", "", "own")
    for kind, namespace in (("ClusterProfile", ""), ("ConfigMap", "default")):
        fleet.records.manifests.delete(kind, namespace, "own")
    fleet.records.catalog.change("clusters", "declared")
    fleet.publisher.publish([Resync(EAST, full=True)])
    fleet.pump()
    return here


def test_orphans_are_shown_and_removed_when_asked(lost: Installation, east: FakeKube) -> None:
    """Those of one cluster; they are named in what is wrong until then."""
    assert [(each.cluster, each.key.name) for each in list_orphans(lost)] == [
        (EAST, "a"),
        (EAST, "b"),
    ]
    [told] = [each for each in list_failures(lost) if each.type == "orphans"]
    assert (told.about, told.message[:2]) == (EAST, "2 ")
    first = next(list_orphans(lost))
    earlier = first.finding.since - timedelta(hours=1)
    lost.records.findings.delete(EAST, first.key)
    lost.records.findings.put(EAST, first.key, replace(first.finding, since=earlier))
    assert [each.since for each in list_failures(lost) if each.type == "orphans"] == [earlier]

    assert [removed for _, removed in remove_orphans(lost, EAST)] == [True, True]

    assert east.objects(CONFIG) == []
    assert list(list_orphans(lost)) == []
    assert [each for each in list_failures(lost) if each.type == "orphans"] == []


def test_an_orphan_that_was_adopted_stays_without_labels(
    lost: Installation, east: FakeKube
) -> None:
    """It was there before any profile came."""
    for each in east._objects.values():
        if each["metadata"].get("annotations"):
            each["metadata"]["annotations"]["bellhop.dev/adopted"] = "field manager 'kubectl'"

    assert [removed for _, removed in remove_orphans(lost, EAST)] == [False, False]

    assert [each["metadata"]["annotations"] for each in east.objects(CONFIG)] == [{}, {}]
    assert list(list_orphans(lost)) == []


@pytest.mark.parametrize("what", ["made anew", "unmarked", "gone", "held"])
def test_a_former_orphan_is_left(
    fleet: Fleet, lost: Installation, east: FakeKube, what: str
) -> None:
    """It is read once more before it is removed."""
    if what == "held":
        fleet.apply(DECLARED)
        fleet.pump()
    elif what == "unmarked":
        for each in east._objects.values():
            each["metadata"].pop("annotations", None)
    else:
        old = east.objects(CONFIG)
        for each in old:
            east.drop(CONFIG, "default", each["metadata"]["name"])
            if what == "made anew":
                east.put(each)
    before = east.objects(CONFIG)

    assert not any(removed for _, removed in remove_orphans(lost, EAST))

    assert east.objects(CONFIG) == before
    assert list(list_orphans(lost)) == []


def test_what_somebody_made_in_place_of_ours_is_wrong(
    fleet: Fleet, here: Installation, east: FakeKube
) -> None:
    """The sentence names the object, the profile, and what to do."""
    east.drop(CONFIG, "default", "a")
    metadata = {"name": "a", "namespace": "default"}
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()

    [told] = [each for each in list_failures(here) if each.type == "foreign"]
    assert told.about == f"ConfigMap default/a in {EAST}"
    assert "`bellhop redeploy own`" in told.message

    redeploy(here, "own", EAST)
    fleet.pump()
    assert [each.type for each in list_failures(here)] == ["deployment", "foreign"]
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert [each for each in list_failures(here) if each.type == "foreign"] == []
