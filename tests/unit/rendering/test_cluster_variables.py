"""Variables of a cluster, at event and at deploy time: the fields of a SveltosCluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import InvalidError
from bellhop.state.cluster import MOST_METADATA
from bellhop.state.messages import Resync
from tests.fakes.fleet import EAST, Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger

TEMPLATE = "projectsveltos.io/template: ok"
SAID = (
    "v: '{{ .Cluster.kind }} {{ .Cluster.metadata.annotations.owner }}"
    " {{ .Cluster.spec.data.registry }} {{ .Cluster.status.version }}'"
)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster, with a trigger and a profile that render what they read of it."""
    kube = fleet.register("east", env="production")
    fleet.declare.annotate(EAST, {"owner": "red"}, {"registry": "eu"})
    fleet.apply(
        join(
            source(),
            trigger(),
            holder("made", config("event", SAID), annotations=INSTANTIATE),
            profile(),
            holder("own", config("deploy", SAID), annotations=TEMPLATE),
        )
    )
    fleet.write("east", service("shop"))
    fleet.pump()
    return kube


def said(kube: FakeKube) -> dict[str, str]:
    return {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)}


def test_templates_read_annotations_data_and_version(east: FakeKube) -> None:
    """All of it is there, at event and at deploy time."""
    expected = "SveltosCluster red eu v1.20.2"

    assert said(east) == {"event": expected, "deploy": expected}


def test_what_changes_is_rendered_again(fleet: Fleet, east: FakeKube) -> None:
    """Annotations and data count as labels do, and no cluster is resynced for them."""
    fleet.declare.annotate(EAST, {"owner": "blue"})
    fleet.declare.annotate(EAST, {}, {"registry": "us"})
    east.calls.clear()
    fleet.pump()

    expected = "SveltosCluster blue us v1.20.2"
    assert said(east) == {"event": expected, "deploy": expected}
    assert not [call for call in east.calls if call.verb == "list"]


def test_a_resync_reads_the_version_again(fleet: Fleet, east: FakeKube) -> None:
    """An upgrade of a cluster reaches what was rendered with its version."""
    east.kubernetes = "v1.34.2"
    fleet.resync()
    fleet.clock.advance(timedelta(minutes=1))
    fleet.declare.resume()
    fleet.pump()

    expected = "SveltosCluster red eu v1.34.2"
    assert said(east) == {"event": expected, "deploy": expected}
    assert fleet.declare.resume() == 0


def test_upgrades_apply_only_profiles_of_those_clusters(fleet: Fleet, east: FakeKube) -> None:
    """Upgrades of many are followed at once; no other cluster is applied to, and none resynced."""
    others = {name: fleet.register(name, env="production") for name in ("west", "north")}
    for name in others:
        fleet.declare.annotate(f"fleet/{name}", {"owner": "green"}, {"registry": "us"})
    fleet.pump()
    upgraded = (east, others["west"])
    for kube in upgraded:
        kube.kubernetes = "v1.34.2"
    fleet.publisher.publish([Resync(EAST), Resync("fleet/west")])
    fleet.pump()
    fleet.clock.advance(timedelta(minutes=1))
    for kube in (east, *others.values()):
        kube.calls.clear()

    assert fleet.declare.resume() == 2
    revision = fleet.records.catalog.read().number
    fleet.pump()

    assert all(kube.calls for kube in upgraded)
    assert not others["north"].calls
    assert not [call for kube in upgraded for call in kube.calls if call.verb == "list"]
    assert fleet.declare.resume() == 0
    assert fleet.records.catalog.read().number == revision


def test_an_upgrade_of_a_cluster_that_has_left_is_forgotten(fleet: Fleet, east: FakeKube) -> None:
    """The worker that finishes it finds the cluster deleted, and asks for nothing."""
    east.kubernetes = "v1.34.2"
    fleet.resync()
    fleet.declare.deregister(EAST)
    fleet.pump()
    fleet.clock.advance(timedelta(minutes=1))

    assert fleet.declare.resume() == 1
    assert fleet.pump() == 0
    assert fleet.declare.resume() == 0


def test_what_is_taken_away_is_an_error_that_names_it(fleet: Fleet, east: FakeKube) -> None:
    """A template that reads what is not there fails as in Sveltos; what was applied stays."""
    fleet.declare.annotate(EAST, {"owner": None})
    fleet.pump()

    assert said(east)["event"] == "SveltosCluster red eu v1.20.2"
    (made,) = fleet.records.profiles.of("made")
    assert 'map has no entry for key "owner"' in made.error


@pytest.mark.usefixtures("east")
def test_a_cluster_may_not_have_too_much(fleet: Fleet) -> None:
    """No record reaches a store's limit, however many annotations a cluster has."""
    with pytest.raises(InvalidError, match="its annotations and data have 65,"):
        fleet.declare.annotate(EAST, {"long": "x" * MOST_METADATA})

    kept = fleet.records.clusters.get(EAST)
    assert kept
    assert dict(kept.value.annotations) == {"owner": "red"}
