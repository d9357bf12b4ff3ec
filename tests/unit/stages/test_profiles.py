"""Users' own ClusterProfiles: to the clusters they select or name, as their contents change."""

from __future__ import annotations

import base64

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import UnreachableError
from bellhop.state.messages import Resync
from bellhop.state.record import Profile
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile

CONFIG = GVK("", "v1", "ConfigMap")


def own(*names: str) -> str:
    return holder("own", *map(config, names))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


@pytest.fixture
def west(fleet: Fleet) -> FakeKube:
    return fleet.register("west", env="test")


def names(kube: FakeKube) -> list[str]:
    return [each["metadata"]["name"] for each in kube.objects(CONFIG)]


def kept(fleet: Fleet) -> Profile | None:
    return next(fleet.records.profiles.of(""), None)


def test_goes_to_the_clusters_it_selects(fleet: Fleet, east: FakeKube, west: FakeKube) -> None:
    """A cluster gets it when its labels begin to match, and loses it when they end."""
    fleet.apply(profile(), own("a"))
    fleet.pump()
    assert (names(east), names(west)) == (["a"], [])

    fleet.declare.label("fleet/west", {"env": "production"})
    fleet.pump()
    assert (names(east), names(west)) == (["a"], ["a"])

    fleet.declare.label("fleet/east", {"env": None})
    fleet.pump()
    assert (names(east), names(west)) == ([], ["a"])


def test_goes_to_the_clusters_it_names(fleet: Fleet, east: FakeKube, west: FakeKube) -> None:
    """A named cluster gets it whatever its labels; one that is registered later, then."""
    refs = ", ".join(f"{{namespace: fleet, name: {name}}}" for name in ("west", "north"))
    fleet.apply(profile(f"clusterRefs: [{refs}]"), own("a"))
    fleet.pump()
    assert (names(east), names(west)) == ([], ["a"])

    north = fleet.register("north")
    fleet.pump()

    assert names(north) == ["a"]


def test_follows_its_config_map(fleet: Fleet, east: FakeKube) -> None:
    """What the ConfigMap names no longer is removed, what it names anew is applied."""
    fleet.apply(profile(), own("a", "b"))
    fleet.pump()

    fleet.apply(own("b", "c"))
    fleet.pump()

    assert names(east) == ["b", "c"]


def test_keeps_what_it_had_while_its_config_map_is_missing(fleet: Fleet, east: FakeKube) -> None:
    """The outcome names what is missing; nothing is withdrawn because of it."""
    fleet.apply(profile(), own("a"))
    fleet.pump()

    fleet.declare.delete([("ConfigMap", "default", "own")])
    fleet.pump()

    outcome = next(fleet.records.outcomes.of("fleet/east"))
    assert (outcome.phase, outcome.reason) == ("FailedNonRetriable", "Missing")
    assert "ConfigMap default/own" in outcome.message
    assert names(east) == ["a"]


def test_withdraws_when_it_is_deleted(fleet: Fleet, east: FakeKube) -> None:
    """Neither objects nor records stay."""
    fleet.apply(profile(), own("a"))
    fleet.pump()

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == []
    assert kept(fleet) is None
    assert list(fleet.records.inventories.of("fleet/east")) == []
    assert list(fleet.records.outcomes.of("fleet/east")) == []
    assert list(fleet.store.query("owner/fleet/east")) == []


LASTING = "stopMatchingBehavior: LeavePolicies"


def test_leaves_its_objects_when_told_so(fleet: Fleet, east: FakeKube) -> None:
    """With LeavePolicies they stay, without our marks: nobody takes them for strays."""
    fleet.apply(profile(more=LASTING))
    fleet.apply(own("a"))
    fleet.pump()
    [before] = east.objects(CONFIG)
    assert "projectsveltos.io/owner-name" in before["metadata"]["annotations"]

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == ["a"]
    [there] = east.objects(CONFIG)
    assert there["metadata"]["uid"] == before["metadata"]["uid"]
    assert "projectsveltos.io" not in str(there)
    assert kept(fleet) is None
    assert list(fleet.store.query("owner/fleet/east")) == []
    fleet.publisher.publish([Resync("fleet/east", full=True)])
    fleet.pump()
    assert list(fleet.records.findings.of("fleet/east")) == []


def test_another_profile_may_have_what_was_left(fleet: Fleet, east: FakeKube) -> None:
    """It is applied with that profile's marks, and removed with it."""
    fleet.apply(profile(more=LASTING))
    fleet.apply(own("a"))
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    fleet.apply(profile().replace("metadata: {name: own}", "metadata: {name: next}"))
    fleet.pump()
    [there] = east.objects(CONFIG)
    assert there["metadata"]["annotations"]["projectsveltos.io/owner-name"] == "next"
    fleet.declare.delete([("ClusterProfile", "", "next")])
    fleet.pump()
    assert names(east) == []


def test_leaves_a_cluster_that_is_away_when_it_is_back(fleet: Fleet, east: FakeKube) -> None:
    """Marks that nobody could take off would make strays."""
    fleet.apply(profile(more=LASTING))
    fleet.apply(own("a"))
    fleet.pump()
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"), "merge")
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    assert kept(fleet) is not None

    east.fail_with(None)
    fleet.clock.advance(fleet.settings.retry_longest)
    fleet.pump()

    assert "projectsveltos.io" not in str(east.objects(CONFIG))
    assert kept(fleet) is None


def test_leaves_what_somebody_made_in_its_place_alone(fleet: Fleet, east: FakeKube) -> None:
    """It bears no marks of ours."""
    fleet.apply(profile(more=LASTING))
    fleet.apply(own("a"))
    fleet.pump()
    east.drop(CONFIG, "default", "a")
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    east.calls.clear()

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == ["a"]
    assert not [call for call in east.calls if call.verb in {"merge", "remove", "apply"}]


def test_what_is_unsure_may_hold_a_secret(fleet: Fleet, east: FakeKube) -> None:
    """Only what was applied, and noted, tells that nobody could quote one."""

    def secrets() -> list[bool]:
        inventory = fleet.records.inventories.get("fleet/east", "own")
        return [each.secret for each in inventory.value.held.values()] if inventory else []

    fleet.apply(profile(), own("a"))
    fleet.pump()
    assert secrets() == [False]
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"), "apply")
    fleet.apply(profile(more="tier: 50"))
    fleet.pump()
    assert secrets() == [True]

    east.fail_with(None)
    fleet.clock.advance(fleet.settings.retry_longest)
    fleet.pump()
    assert secrets() == [False]


def test_waits_for_a_cluster_that_is_away_before_it_is_forgotten(
    fleet: Fleet, east: FakeKube
) -> None:
    """A withdrawn profile is kept, without its contents, until the last cluster is left."""
    fleet.apply(profile(), own("a"))
    fleet.pump()
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"))
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    found = kept(fleet)
    assert found
    assert (found.contents, found.destinations, found.leaving) == ((), (), ("fleet/east",))

    east.fail_with(None)
    fleet.clock.advance(fleet.settings.retry_longest)
    fleet.pump()

    assert names(east) == []
    assert kept(fleet) is None


@pytest.mark.usefixtures("west")
def test_is_kept_while_it_selects_no_cluster_and_forgotten_when_deleted(fleet: Fleet) -> None:
    """A profile that is nowhere is still shown, and leaves no record behind."""
    fleet.apply(profile(), own("a"))
    fleet.pump()
    fleet.declare.label("fleet/west", {"env": "production"})
    fleet.pump()
    fleet.declare.label("fleet/west", {"env": "test"})
    fleet.pump()
    found = kept(fleet)
    assert found
    assert (found.destinations, found.leaving) == ((), ())

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert kept(fleet) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("hush-hush", "not a Kubernetes object", id="no object"),
        pytest.param("hush-hush: [", "this is not YAML", id="no YAML"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: hush-hush, name: a}",
            "'metadata.labels' of the object must be a map",
            id="labels that are none",
        ),
    ],
)
def test_shows_nothing_of_a_secret(
    fleet: Fleet, east: FakeKube, content: str, expected: str
) -> None:
    """Whatever is wrong in a Secret, no record, log or ledger quotes it."""
    data = base64.b64encode(content.encode()).decode()
    secret = f"""
apiVersion: v1
kind: Secret
type: addons.projectsveltos.io/cluster-profile
metadata: {{name: own, namespace: default}}
data: {{main.yaml: {data}}}
"""
    fleet.apply(profile().replace("kind: ConfigMap", "kind: Secret"), secret)
    fleet.pump()

    outcome = next(fleet.records.outcomes.of("fleet/east"))
    assert expected in outcome.message
    shown = "\n".join([fleet.output.getvalue(), outcome.message, *map(str, fleet.ledger())])
    assert "hush" not in shown
    assert data not in shown
    del east
