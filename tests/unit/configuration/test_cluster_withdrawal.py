"""Deleted SveltosClusters: few deregister their clusters, most at once are held."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER
from bellhop.configuration.cluster_objects import CONFIGURATION_UID
from bellhop.configuration.origin import clear_configuration_cluster
from bellhop.configuration.records import ConfiguredObject
from bellhop.diagnosis.failures import list_failures
from bellhop.diagnosis.held_clusters import list_held_clusters, release_clusters
from bellhop.ports.kube import Manifest
from tests.fakes.hooks import before_each, failing
from tests.fakes.manifests import config, holder, profile
from tests.unit.configuration.hub import HUB, SETTLE, Hub

NAMES = [f"c{number}" for number in range(6)]


class Clusters(Hub):
    """A hub with six clusters that its objects have registered, and one of a command."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.here = self.register_clusters(folder)
        self.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}})
        for name in NAMES:
            self.own(name)

    def make(self, name: str) -> Manifest:
        """Create an object, and have its name sent."""
        place = {"namespace": "fleet", "name": name}
        written = {"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "metadata": place}
        stored = self.kube.put({**written, "spec": {}})
        self.hint(stored, before=0)
        self.fleet.pump()
        return stored

    def own(self, name: str) -> None:
        """Register a cluster as its object would, and store the object."""
        self.fleet.register(name, env="production")
        stored = self.make(name)
        kept = self.fleet.records.clusters.get(f"fleet/{name}")
        assert kept
        uid = stored["metadata"]["uid"]
        marked = replace(kept.value, annotations={CONFIGURATION_UID: uid})
        self.fleet.declare.register(marked, expect=kept.token)
        version, now = stored["metadata"]["resourceVersion"], self.fleet.clock.now()
        record = ConfiguredObject(uid, version, 1, "InForce", in_force=True, at=now)
        self.fleet.records.configured.put(CLUSTER.kind, "fleet", name, record)

    def drop(self, names: Sequence[str], *, sent: bool = True) -> None:
        """Delete objects at once, as `kubectl delete` of a folder does."""
        for name in names:
            self.drop_one(name, sent=sent)
        self.fleet.pump()
        self.fleet.wait(SETTLE, times=3)

    def drop_one(self, name: str, *, sent: bool = True) -> None:
        """Delete an object, and have its name sent."""
        stored = self.kube.get(CLUSTER, "fleet", name)
        assert stored
        self.kube.remove(CLUSTER, "fleet", name)
        if sent:
            self.hint(stored, before=int(stored["metadata"]["resourceVersion"]))

    def registered(self) -> list[str]:
        """Name the clusters of objects that are registered."""
        found = self.fleet.records.clusters.all()
        return [each.name for each in found if each.name in NAMES]


@pytest.fixture
def hub(tmp_path: Path) -> Clusters:
    return Clusters(tmp_path)


def test_a_few_are_deregistered_and_their_addons_stay(hub: Clusters) -> None:
    hub.write(profile(), holder("own", config("made")))
    hub.drop(NAMES[:2])

    assert hub.registered() == NAMES[2:]
    assert hub.fleet.access.clusters["fleet/c0"].names() == ["made"]
    assert hub.fleet.records.configured.get(CLUSTER.kind, "fleet", "c0") is None


def test_more_than_half_at_once_are_held_until_they_are_released(hub: Clusters) -> None:
    hub.drop(NAMES[1:5])
    hub.fleet.resync(HUB)

    assert hub.registered() == NAMES
    [held] = list_held_clusters(hub.here)
    assert held.clusters == tuple(f"fleet/{name}" for name in NAMES[1:5])
    assert f"`bellhop release --change {held.name}`" in held.why
    assert "4 of 6 clusters" in held.why
    [line] = [each for each in list_failures(hub.here) if each.type == "held"]
    assert (line.about, line.count) == (f"change {held.name}", 4)

    assert release_clusters(hub.here, held.name) == list(held.clusters)
    hub.fleet.pump()
    assert hub.registered() == ["c0", "c5"]
    assert release_clusters(hub.here, held.name) == []
    assert [each for each in list_failures(hub.here) if each.type == "held"] == []


def test_what_is_deleted_one_after_another_is_one_change(hub: Clusters) -> None:
    """As Argo CD prunes: each within two seconds of the one before."""
    for name in NAMES[:4]:
        hub.drop_one(name)
        hub.fleet.wait(timedelta(seconds=1.5))
    hub.fleet.wait(SETTLE, times=3)

    assert hub.registered() == NAMES
    assert len(list_held_clusters(hub.here)) == 1


def test_deletions_that_do_not_end_are_counted_after_a_minute(hub: Clusters) -> None:
    """Another cluster is found deleted again and again."""
    table = hub.fleet.records.configured
    hub.drop_one("c0")
    left_at = 0.0
    for number in range(50):
        record = replace(hub.read(CLUSTER.kind, "c1", "fleet"), at=hub.fleet.clock.now())
        table.put(CLUSTER.kind, "fleet", "c1", replace(record, state="Leaving"))
        hub.fleet.wait(timedelta(seconds=1.5))
        if "c0" not in hub.registered():
            left_at = 1.5 * number
            break

    assert 55 < left_at < 70
    assert "c1" in hub.registered()


def test_one_that_is_made_again_is_in_force_again(hub: Clusters) -> None:
    """Then the others are as many as they are, and stay held."""
    hub.drop(NAMES[:4])
    hub.make("c0")
    hub.fleet.resync(HUB)

    assert hub.read(CLUSTER.kind, "c0", "fleet").state == "InForce"
    [held] = list_held_clusters(hub.here)
    assert held.clusters == ("fleet/c1", "fleet/c2", "fleet/c3")


def test_an_object_that_is_still_there_names_the_change(hub: Clusters) -> None:
    """As one that a finalizer of somebody else keeps."""
    found = hub.kube.get(CLUSTER, "fleet", "c0")
    assert found
    hub.kube.put({**found, "metadata": {**found["metadata"], "finalizers": ["a/b"]}})
    hub.drop(NAMES[:4])

    [held] = list_held_clusters(hub.here)
    found = hub.kube.get(CLUSTER, "fleet", "c0")
    assert found
    assert found["metadata"]["annotations"] == {"bellhop.dev/held": held.name}


def test_a_death_while_it_is_decided_lets_none_go(hub: Clusters) -> None:
    """The next worker counts those that are decided already, and holds the rest with them."""
    table = hub.fleet.records.configured
    alive = [True]

    def die() -> None:
        ended = [x for _, x in table.rows(CLUSTER.kind) if x.value.state == "Ending"]
        if len(ended) > 1 and alive:
            alive.clear()
            raise KeyboardInterrupt

    before_each(table, "put", die)
    with pytest.raises(KeyboardInterrupt):
        hub.drop(NAMES[:4])
    hub.fleet.wait(timedelta(minutes=10), times=2)

    assert hub.registered() == NAMES
    [held] = list_held_clusters(hub.here)
    assert len(held.clusters) == 4


def test_a_killed_release_is_finished_by_a_resync(hub: Clusters) -> None:
    hub.drop(NAMES[:4])
    [held] = list_held_clusters(hub.here)
    with (
        failing(hub.fleet.publisher, "publish", KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        release_clusters(hub.here, held.name)
    hub.fleet.resync(HUB)
    assert hub.registered() == ["c1", "c2", "c3", "c4", "c5"]

    release_clusters(hub.here, held.name)
    hub.fleet.pump()
    assert hub.registered() == ["c4", "c5"]


def test_one_that_a_dead_worker_registered_is_guarded_as_well(hub: Clusters) -> None:
    """It has no record yet."""
    for name in NAMES:
        hub.fleet.records.configured.delete(CLUSTER.kind, "fleet", name)
    hub.drop(NAMES)

    assert hub.registered() == NAMES
    assert len(list_held_clusters(hub.here)) == 1


def test_all_that_is_missing_without_an_event_stays(hub: Clusters) -> None:
    """As after a restored backup; a command deregisters it."""
    hub.drop(NAMES, sent=False)
    hub.fleet.resync(HUB)
    hub.fleet.wait(SETTLE, times=2)

    assert hub.registered() == NAMES
    kept = hub.read(CLUSTER.kind, "c0", "fleet")
    assert kept.state == "Missing"
    assert "`bellhop deregister cluster`" in kept.message


def test_cleared_the_configuration_keeps_what_is_held(hub: Clusters) -> None:
    hub.drop(NAMES)
    clear_configuration_cluster(hub.here)
    hub.fleet.wait(SETTLE, times=3)

    assert hub.registered() == NAMES
    assert list_held_clusters(hub.here) == []


def test_a_preview_deregisters_and_registers_nothing(hub: Clusters) -> None:
    """Nor does it withdraw a manifest; once it is on, all that was deleted leaves."""
    hub.write(profile(), holder("own", config("made")))
    hub.fleet.declare.configure(HUB, "preview")
    hub.fleet.pump()
    hub.make("new")
    hub.drop(NAMES[:1])
    hub.delete("ClusterProfile", "own")
    hub.fleet.resync(HUB)

    assert hub.registered() == NAMES
    assert hub.fleet.records.clusters.get("fleet/new") is None
    assert hub.read(CLUSTER.kind, "c0", "fleet").state == "DryRun"
    assert hub.read("ClusterProfile", "own").state == "DryRun"
    assert hub.is_stored("ClusterProfile", "own")
    assert hub.fleet.access.clusters["fleet/c0"].names() == ["made"]

    hub.fleet.declare.configure(HUB, "on")
    hub.fleet.pump()
    hub.fleet.wait(SETTLE, times=4)
    assert hub.registered() == NAMES[1:]
    assert not hub.is_stored("ClusterProfile", "own")
