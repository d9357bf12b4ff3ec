"""Limits of what one change may remove from a cluster, or from a profile, before it is held."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bellhop.core.gvk import GVK
from bellhop.declarations.removal_limits import RemovalCount, RemovalLimits, Step
from bellhop.errors import StaleError
from bellhop.rendering.deletion_limit import DeletionLimit
from bellhop.settings import Settings
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.fleet import EAST, Fleet, OpenFleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

MADE = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
OF = "clusterSelector: {matchLabels: {%s}}"
STAGING = OF % "env: staging"
PINNED = "clusterRefs: [{kind: SveltosCluster, namespace: fleet, name: east}]"


def held(fleet: Fleet) -> list[tuple[str, str]]:
    return [each.value.rule for each in fleet.records.removals.all()]


def own(*names: str, selected: str = OF % "env: production") -> str:
    """Return profiles with a ConfigMap of their name each."""
    each = (join(profile(selected, name=name), holder(name, config(name))) for name in names)
    return join(*each)


def matching(fleet: Fleet, kube: FakeKube, number: int) -> None:
    """Have a trigger deploy a ConfigMap for each of some Services of the cluster `east`."""
    fleet.apply(source(), trigger(), MADE)
    for each in range(number):
        kube.put(service(f"s{each}"))
    fleet.resync()


def mistype(fleet: Fleet) -> None:
    fleet.declare.label(EAST, {"env": "prodution"})
    fleet.pump()


def test_all_that_a_change_takes_from_a_cluster_is_held_together(open_fleet: OpenFleet) -> None:
    """The profiles stay whose add-ons would be few, as those of a trigger are too many."""
    fleet = open_fleet(Settings(hold_from=8))
    east, west = (fleet.register(name, env="production") for name in ("east", "west"))
    fleet.apply(own("p0", "p1", "p2"), own("stays", selected=PINNED))
    matching(fleet, east, 10)
    before = east.names()
    assert len(before) == 14

    mistype(fleet)

    assert east.names() == before
    assert held(fleet) == [("", "p0"), ("", "p1"), ("", "p2"), ("made", "")]
    assert west.names() == ["p0", "p1", "p2"]
    fleet.declare.label(EAST, {"env": "production"})
    assert held(fleet) == []


def test_what_goes_together_is_released_together(open_fleet: OpenFleet) -> None:
    """One release removes all of it from the cluster."""
    fleet = open_fleet(Settings(hold_from=8))
    east = fleet.register("east", env="production")
    fleet.apply(own("p0", "p1"))
    matching(fleet, east, 10)

    mistype(fleet)
    [change] = {each.value.change for each in fleet.records.removals.all()}
    fleet.declare.release(change)
    fleet.pump()

    assert (east.names(), held(fleet)) == ([], [])


@pytest.mark.parametrize("profiles", [0, 1, 6])
@pytest.mark.parametrize("matches", [0, 1, 2])
def test_a_typo_takes_one_add_on_of_a_cluster_but_not_all(
    fleet: Fleet, profiles: int, matches: int
) -> None:
    """Two add-ons or more that are all of a cluster are held; a single one is removed at once."""
    east = fleet.register("east", env="production")
    fleet.register("west", env="production")
    names = [f"p{number}" for number in range(profiles)]
    if names:
        fleet.apply(own(*names))
    matching(fleet, east, matches)
    before = east.names()
    assert len(before) == profiles + matches

    mistype(fleet)

    assert east.names() == (before if len(before) > 1 else [])
    assert bool(held(fleet)) == (len(before) > 1)


@pytest.mark.parametrize("many", [65, 1_000])
def test_a_cluster_that_loses_all_is_found_among_many_that_lose_more(
    fleet: Fleet, many: int
) -> None:
    """A change may concern any number of clusters, and the least of them may lose all it has."""
    fleet.register("east", env="production")
    leaving = ("a", "b", "d")
    fleet.apply(own(*leaving, selected=STAGING))
    after = fleet.catalogs.current()
    fleet.apply(own(*leaving), source(), trigger(), MADE)
    step = Step(fleet.catalogs.current(), after, of_rules=True)
    others = [f"fleet/c{number}" for number in range(many)]
    counts = {("", name): RemovalCount() for name in leaving}
    for name in leaving:
        counts["", name].add(name, "", others, 2 * many)
    for name in ("a", "b"):
        counts["", name].add(name, "", [EAST], 1)
    for cluster, names in [(EAST, "ab"), *((each, "abcd") for each in others)]:
        for name in names:
            outcome = DeploymentStatus(cluster, name, "made", "", "Provisioned", fleet.clock.now())
            fleet.records.outcomes.put(outcome)

    limits = RemovalLimits(fleet.records, DeletionLimit(least=10 * many, share=0.9))
    assert limits.exceeded(step, counts, ()) == {("", "a"), ("", "b"), ("", "d")}


Prepare = Callable[[Fleet], object]

ORDINARY: dict[str, tuple[str, Prepare, int]] = {
    "one of several profiles leaves a cluster": (
        join(own("a", "b"), own("c", selected=PINNED)),
        lambda fleet: fleet.apply(own("a", selected=STAGING)),
        2,
    ),
    "a cluster moves to as many other profiles": (
        join(own("a", "b"), own("c", "d", selected=STAGING)),
        lambda fleet: fleet.declare.label(EAST, {"env": "staging"}),
        2,
    ),
    "a profile that is deleted by its name": (
        join(own("a", "b"), own("c", selected=PINNED)),
        lambda fleet: fleet.declare.delete([("ClusterProfile", "", "a")]),
        2,
    ),
    "all profiles of a cluster are deleted by name": (
        own("a", "b"),
        lambda fleet: fleet.declare.delete(
            [("ClusterProfile", "", "a"), ("ClusterProfile", "", "b")]
        ),
        0,
    ),
    "a profile is deleted with which two others came": (
        join(
            own("base", "more", selected=OF % "env: none"),
            profile(name="app", more="dependsOn: [base, more]"),
            holder("app", config("app")),
        ),
        lambda fleet: fleet.declare.delete([("ClusterProfile", "", "app")]),
        0,
    ),
    "a profile is replaced by another": (
        own("a", "b"),
        lambda fleet: fleet.apply(own("a", "b", selected=STAGING), own("c", "d")),
        2,
    ),
}


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_change_is_not_held(fleet: Fleet, case: str) -> None:
    """Profiles that a user named, or that others replace, are removed at once."""
    declared, change, left = ORDINARY[case]
    east = fleet.register("east", env="production")
    fleet.deploy(declared)

    change(fleet)
    fleet.pump()

    assert held(fleet) == []
    assert len(east.names()) == left


def test_a_selector_that_loses_both_clusters_is_held(fleet: Fleet) -> None:
    """All clusters of a profile are held whatever else is there; of one more it loses its share."""
    kubes = [fleet.register(name, env="production") for name in ("east", "west")]
    fleet.deploy(own("a", "b"))

    fleet.deploy(own("a", selected=OF % "env: prodution"))
    assert held(fleet) == [("", "a")]
    assert [each.names() for each in kubes] == [["a", "b"]] * 2

    fleet.deploy(own("a", selected=PINNED))
    fleet.release()
    fleet.pump()
    assert [each.names() for each in kubes] == [["a", "b"], ["b"]]


def test_a_profile_that_moves_to_as_many_clusters_is_not_held(fleet: Fleet) -> None:
    """It leaves two and comes to two others: nothing is lost; of one other it is held."""
    old = [fleet.register(name, env="production") for name in ("east", "west")]
    new = [fleet.register(name, env="staging") for name in ("north", "south")]
    fleet.deploy(own("a"), own("b"))

    fleet.deploy(own("a", selected=STAGING))
    assert [each.names() for each in (*old, *new)] == [["b"], ["b"], ["a"], ["a"]]

    fleet.deploy(own("a", selected=PINNED))
    assert held(fleet) == [("", "a")]
    assert [each.names() for each in (*old, *new)] == [["a", "b"], ["b"], ["a"], ["a"]]


@pytest.mark.parametrize(("matches", "left"), [(1, []), (2, ["for-s0", "for-s1"])])
def test_a_source_that_is_deleted_takes_no_more_than_one_add_on(
    fleet: Fleet, matches: int, left: list[str]
) -> None:
    """Its trigger stays, so no user named its add-ons; with its trigger all of it goes."""
    east = fleet.register("east", env="production")
    fleet.apply(own("keeps", selected=PINNED))
    matching(fleet, east, matches)

    fleet.delete("EventSource", "watched")
    assert east.names() == [*left, "keeps"]

    fleet.deploy(source())
    fleet.declare.delete([("EventSource", "", "watched"), ("EventTrigger", "", "made")])
    fleet.pump()
    assert (east.names(), held(fleet)) == (["keeps"], [])


def test_the_only_match_ends_and_its_add_on_goes(fleet: Fleet) -> None:
    """One object that is deleted is no change of manifests."""
    east = fleet.register("east", env="production")
    matching(fleet, east, 1)
    found = east.get(GVK("", "v1", "Service"), "default", "s0")
    assert found
    fleet.drop("east", found)
    fleet.pump()

    assert (east.names(), held(fleet)) == ([], [])


def test_a_deregistration_removes_what_its_events_deployed_to_other_clusters(fleet: Fleet) -> None:
    """It is named beforehand, and never held; what is in clusters that left before it stays."""
    east = fleet.register("east", env="production")
    kubes = [fleet.register(name, gets="it") for name in ("north", "south")]
    fleet.apply(
        source(), trigger(more="destinationClusterSelector: {matchLabels: {gets: it}}"), MADE
    )
    east.put(service("s0"))
    fleet.resync()
    assert [each.names() for each in kubes] == [["for-s0"]] * 2

    plan = fleet.declare.foresee_deregistration(EAST)
    [found] = plan.at_once
    assert (plan.held, found.rule, found.clusters) == (
        [],
        ("made", ""),
        ("fleet/north", "fleet/south"),
    )
    [rest] = fleet.declare.foresee_deregistration("fleet/north", EAST).at_once
    assert rest.clusters == ("fleet/south",)
    fleet.declare.deregister(EAST)
    fleet.pump()
    assert ([each.names() for each in kubes], held(fleet)) == ([[], []], [])


def test_a_dry_run_names_what_goes_at_once(fleet: Fleet) -> None:
    """Also where nothing would be held, or the guard is off."""
    fleet.register("east", env="production")
    fleet.deploy(own("a"), own("b", selected=PINNED))

    new = fleet.declare.relabelled(EAST, {"env": "prodution"})
    plan = fleet.declare.foresee_clusters([new])

    assert plan.held == []
    assert [(each.rule, each.clusters) for each in plan.at_once] == [(("", "a"), (EAST,))]


def test_what_leaves_already_does_not_count_as_staying(fleet: Fleet) -> None:
    """A profile that was just deleted is still there when a typo takes all others."""
    east = fleet.register("east", env="production")
    fleet.deploy(own("a", "b"), own("c", selected=PINNED))

    fleet.declare.delete([("ClusterProfile", "", "c")])
    mistype(fleet)

    assert east.names() == ["a", "b"]


def test_nothing_is_held_of_a_cluster_that_is_deregistered(fleet: Fleet) -> None:
    """Later removals of the profiles are not held because of it."""
    fleet.register("east", env="production")
    west = fleet.register("west", env="production")
    fleet.deploy(own("a", "b"))
    mistype(fleet)
    assert held(fleet) == [("", "a"), ("", "b")]

    fleet.declare.deregister(EAST)
    fleet.pump()

    assert held(fleet) == []
    assert west.names() == ["a", "b"]


def test_nothing_is_held_because_of_a_registration_that_came_too_late(fleet: Fleet) -> None:
    """Another one wrote the cluster first: the labels are as before, and so is what may go."""
    east = fleet.register("east", env="production")
    fleet.deploy(own("a", "b"))
    cluster = fleet.declare.relabelled(EAST, {"env": "prodution"})

    with pytest.raises(StaleError):
        fleet.declare.register(cluster, expect="an earlier version")
    fleet.pump()

    assert held(fleet) == []
    assert east.names() == ["a", "b"]
