"""Users' own ClusterProfiles: to the clusters they select or name, as their contents change."""

from __future__ import annotations

import base64

import pytest

from bellhop.errors import UnreachableError
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, profile


def own(*names: str) -> str:
    return holder("own", *map(config, names))


@pytest.fixture
def west(fleet: Fleet) -> FakeKube:
    return fleet.register("west", env="test")


def kept(fleet: Fleet) -> Profile | None:
    return next(fleet.records.profiles.of(""), None)


def test_goes_to_the_clusters_it_selects(fleet: Fleet, east: FakeKube, west: FakeKube) -> None:
    """A cluster gets it when its labels begin to match, and loses it when they end."""
    fleet.deploy(profile(), own("a"))
    assert (east.names(), west.names()) == (["a"], [])

    fleet.declare.label("fleet/west", {"env": "production"})
    fleet.pump()
    assert (east.names(), west.names()) == (["a"], ["a"])

    fleet.declare.label("fleet/east", {"env": None})
    fleet.pump()
    assert (east.names(), west.names()) == ([], ["a"])


def test_goes_to_the_clusters_it_names(fleet: Fleet, east: FakeKube, west: FakeKube) -> None:
    """A named cluster gets it whatever its labels; one that is registered later, then."""
    refs = ", ".join(f"{{namespace: fleet, name: {name}}}" for name in ("west", "north"))
    fleet.deploy(profile(f"clusterRefs: [{refs}]"), own("a"))
    assert (east.names(), west.names()) == ([], ["a"])

    north = fleet.register("north")
    fleet.pump()

    assert north.names() == ["a"]


def test_follows_its_config_map(fleet: Fleet, east: FakeKube) -> None:
    """An object that the ConfigMap drops is removed, one that it adds is applied."""
    fleet.deploy(profile(), own("a", "b"))

    fleet.deploy(own("b", "c"))

    assert east.names() == ["b", "c"]


def test_keeps_what_it_had_while_its_config_map_is_missing(fleet: Fleet, east: FakeKube) -> None:
    """The outcome names what is missing; nothing is withdrawn because of it."""
    fleet.deploy(profile(), own("a"))

    fleet.delete("ConfigMap", "own", "default")

    outcome = next(fleet.records.outcomes.of("fleet/east"))
    assert (outcome.phase, outcome.reason) == ("FailedNonRetriable", "Missing")
    assert "ConfigMap default/own" in outcome.message
    assert east.names() == ["a"]


def test_withdraws_when_it_is_deleted(fleet: Fleet, east: FakeKube) -> None:
    """Neither objects nor records stay."""
    fleet.deploy(profile(), own("a"))

    fleet.delete("ClusterProfile", "own")

    assert east.names() == []
    assert kept(fleet) is None
    assert list(fleet.records.inventories.of("fleet/east")) == []
    assert list(fleet.records.outcomes.of("fleet/east")) == []
    assert list(fleet.store.query("owner/fleet/east")) == []


LASTING = "stopMatchingBehavior: LeavePolicies"


def test_leave_policies_leaves_its_objects(fleet: Fleet, east: FakeKube) -> None:
    """With LeavePolicies they stay, without ownership labels: they are no orphans."""
    fleet.apply(profile(more=LASTING))
    fleet.deploy(own("a"))
    [before] = east.objects(CONFIG)
    assert "projectsveltos.io/owner-name" in before["metadata"]["annotations"]

    fleet.delete("ClusterProfile", "own")

    assert east.names() == ["a"]
    [there] = east.objects(CONFIG)
    assert there["metadata"]["uid"] == before["metadata"]["uid"]
    assert "projectsveltos.io" not in str(there)
    assert kept(fleet) is None
    assert list(fleet.store.query("owner/fleet/east")) == []
    fleet.resync(full=True)
    assert list(fleet.records.findings.of("fleet/east")) == []


def test_another_profile_may_have_what_was_left(fleet: Fleet, east: FakeKube) -> None:
    """It is applied with that profile's marks, and removed with it."""
    fleet.apply(profile(more=LASTING))
    fleet.deploy(own("a"))
    fleet.delete("ClusterProfile", "own")

    fleet.deploy(profile().replace("metadata: {name: own}", "metadata: {name: next}"))
    [there] = east.objects(CONFIG)
    assert there["metadata"]["annotations"]["projectsveltos.io/owner-name"] == "next"
    fleet.delete("ClusterProfile", "next")
    assert east.names() == []


def test_leaves_a_cluster_that_is_away_when_it_is_back(fleet: Fleet, east: FakeKube) -> None:
    """Ownership labels that stay would make orphans."""
    fleet.apply(profile(more=LASTING))
    fleet.deploy(own("a"))
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"), "merge")
    fleet.delete("ClusterProfile", "own")
    assert kept(fleet) is not None

    east.fail_with(None)
    fleet.wait(fleet.settings.retry_longest)

    assert "projectsveltos.io" not in str(east.objects(CONFIG))
    assert kept(fleet) is None


def test_leaves_an_object_of_others_in_its_place(fleet: Fleet, east: FakeKube) -> None:
    """It bears no marks of ours."""
    fleet.apply(profile(more=LASTING))
    fleet.deploy(own("a"))
    east.drop(CONFIG, "default", "a")
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    east.calls.clear()

    fleet.delete("ClusterProfile", "own")

    assert east.names() == ["a"]
    assert not [call for call in east.calls if call.verb in {"merge", "remove", "apply"}]


def test_what_is_unsure_may_hold_a_secret(fleet: Fleet, east: FakeKube) -> None:
    """Only a recorded apply shows that no message can quote one."""

    def secrets() -> list[bool]:
        inventory = fleet.records.inventories.get("fleet/east", "own")
        return [each.secret for each in inventory.value.held.values()] if inventory else []

    fleet.deploy(profile(), own("a"))
    assert secrets() == [False]
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"), "apply")
    fleet.deploy(profile(more="tier: 50"))
    assert secrets() == [True]

    east.fail_with(None)
    fleet.wait(fleet.settings.retry_longest)
    assert secrets() == [False]


def test_waits_for_a_cluster_that_is_away_before_it_is_forgotten(
    fleet: Fleet, east: FakeKube
) -> None:
    """A withdrawn profile is kept, without its contents, until the last cluster is left."""
    fleet.deploy(profile(), own("a"))
    east.fail_with(UnreachableError("cluster 'fleet/east' does not answer"))
    fleet.delete("ClusterProfile", "own")
    found = kept(fleet)
    assert found
    assert (found.contents, found.destinations, found.leaving) == ((), (), ("fleet/east",))

    east.fail_with(None)
    fleet.wait(fleet.settings.retry_longest)

    assert east.names() == []
    assert kept(fleet) is None


@pytest.mark.usefixtures("west")
def test_is_kept_while_it_selects_no_cluster_and_forgotten_when_deleted(fleet: Fleet) -> None:
    """A profile that is nowhere is still shown, and leaves no record behind."""
    fleet.deploy(profile(), own("a"))
    fleet.declare.label("fleet/west", {"env": "production"})
    fleet.pump()
    fleet.declare.label("fleet/west", {"env": "test"})
    fleet.pump()
    found = kept(fleet)
    assert found
    assert (found.destinations, found.leaving) == ((), ())

    fleet.delete("ClusterProfile", "own")

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
    """Whatever is wrong in a Secret, no record, log or event log quotes it."""
    data = base64.b64encode(content.encode()).decode()
    secret = f"""
apiVersion: v1
kind: Secret
type: addons.projectsveltos.io/cluster-profile
metadata: {{name: own, namespace: default}}
data: {{main.yaml: {data}}}
"""
    fleet.deploy(profile().replace("kind: ConfigMap", "kind: Secret"), secret)

    outcome = next(fleet.records.outcomes.of("fleet/east"))
    assert expected in outcome.message
    shown = "\n".join([fleet.output.getvalue(), outcome.message, *map(str, fleet.ledger())])
    assert "hush" not in shown
    assert data not in shown
    del east
