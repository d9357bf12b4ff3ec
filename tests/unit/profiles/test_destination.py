"""One destination, named by a template over the event."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.state.profile import Profile
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger

TO = "'{{ .Resource.metadata.labels.to }}'"


@pytest.fixture
def clusters(fleet: Fleet) -> dict[str, FakeKube]:
    """Register a source and two others, and declare a trigger that sends where a label says."""
    found = {name: fleet.register(name, **labels) for name, labels in LABELS.items()}
    declare(fleet, f"destinationCluster: {{namespace: fleet, name: {TO}}}")
    return found


LABELS = {"east": {"env": "production"}, "west": {"dep": "eng"}, "north": {"dep": "ops"}}


def declare(fleet: Fleet, more: str) -> None:
    text = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(source(), trigger(more=more), text))


def send(fleet: Fleet, to: str, name: str = "shop") -> dict[str, Any]:
    """Write a Service that says where its add-ons go, and do all that follows."""
    manifest = service(name)
    manifest["metadata"]["labels"] = {"to": to} if to else {}
    written = fleet.write("east", manifest)
    fleet.pump()
    return written


def there(clusters: dict[str, FakeKube]) -> dict[str, list[str]]:
    named = {cluster: kube.names() for cluster, kube in clusters.items()}
    return {cluster: names for cluster, names in named.items() if names}


def made(fleet: Fleet) -> Profile:
    (profile,) = fleet.records.profiles.of("made")
    return profile


def test_goes_where_the_event_says(fleet: Fleet, clusters: dict[str, FakeKube]) -> None:
    """Each object its own way; one that says another cluster leaves the first."""
    send(fleet, "west", "a")
    written = send(fleet, "north", "b")
    assert there(clusters) == {"west": ["for-a"], "north": ["for-b"]}

    send(fleet, "west", "b")
    assert there(clusters) == {"west": ["for-a", "for-b"]}

    fleet.drop("east", {**written, "metadata": fleet_metadata(clusters["east"], "b")})
    fleet.pump()
    assert there(clusters) == {"west": ["for-a"]}


def fleet_metadata(kube: FakeKube, name: str) -> dict[str, Any]:
    found = kube.objects(GVK("", "v1", "Service"))
    return next(each["metadata"] for each in found if each["metadata"]["name"] == name)


def test_an_empty_namespace_is_that_of_the_events_cluster(
    fleet: Fleet, clusters: dict[str, FakeKube]
) -> None:
    """As for the refs of a trigger."""
    declare(fleet, "destinationCluster: {name: west, kind: SveltosCluster}")
    send(fleet, "")

    assert there(clusters) == {"west": ["for-shop"]}


def test_stays_where_it_is_while_the_template_fails(
    fleet: Fleet, clusters: dict[str, FakeKube]
) -> None:
    """An error is never an empty answer: it says the field, and withdraws nothing."""
    send(fleet, "west")
    send(fleet, "")

    assert there(clusters) == {"west": ["for-shop"]}
    assert "destinationCluster.name:1:" in made(fleet).error
    assert made(fleet).destinations == ("fleet/west",)

    send(fleet, "north")
    assert there(clusters) == {"north": ["for-shop"]}
    assert made(fleet).error == ""


def test_a_first_failure_goes_nowhere_and_says_why(
    fleet: Fleet, clusters: dict[str, FakeKube]
) -> None:
    """Not to the event's cluster, which the template did not name."""
    send(fleet, "")

    assert there(clusters) == {}
    assert 'map has no entry for key "to"' in made(fleet).error


def test_waits_for_a_cluster_that_is_not_there(fleet: Fleet, clusters: dict[str, FakeKube]) -> None:
    """It leaves where it was, says so, and goes on when the cluster is registered."""
    send(fleet, "west")
    send(fleet, "south")
    assert there(clusters) == {}
    assert made(fleet).error.startswith("cannot deploy anything to cluster 'fleet/south'")

    clusters["south"] = fleet.register("south")
    fleet.pump()
    assert there(clusters) == {"south": ["for-shop"]}
    assert made(fleet).error == ""

    fleet.declare.deregister("fleet/south")
    fleet.pump()
    assert made(fleet).error.startswith("cannot deploy anything to cluster 'fleet/south'")


def test_a_selector_beside_it_counts_too(fleet: Fleet, clusters: dict[str, FakeKube]) -> None:
    """Clusters that are selected and the one that is named get it, as in Sveltos."""
    selected = "destinationClusterSelector: {matchLabels: {dep: eng}}"
    declare(fleet, f"{selected}\n  destinationCluster: {{name: {TO}}}")
    send(fleet, "north")

    assert there(clusters) == {"west": ["for-shop"], "north": ["for-shop"]}


@pytest.mark.parametrize(
    ("behavior", "stays"), [("WithdrawPolicies", {}), ("LeavePolicies", {"west": ["for-shop"]})]
)
def test_the_trigger_decides_what_a_deregistered_cluster_leaves_in_others(
    fleet: Fleet, clusters: dict[str, FakeKube], behavior: str, stays: dict[str, list[str]]
) -> None:
    """Its add-ons in other clusters are withdrawn, or left if the trigger has LeavePolicies."""
    selected = "destinationClusterSelector: {matchLabels: {dep: eng}}"
    declare(fleet, selected)
    send(fleet, "")
    declare(fleet, f"{selected}\n  stopMatchingBehavior: {behavior}")
    fleet.pump()
    assert there(clusters) == {"west": ["for-shop"]}

    fleet.declare.deregister("fleet/east")
    fleet.pump()
    assert there(clusters) == stays


def test_a_label_of_another_cluster_changes_nothing(
    fleet: Fleet, clusters: dict[str, FakeKube]
) -> None:
    """Labels do not matter for a cluster that is named."""
    send(fleet, "west")
    clusters["west"].calls.clear()
    fleet.declare.label("fleet/north", {"dep": "eng"})
    fleet.pump()

    assert there(clusters) == {"west": ["for-shop"]}
    assert clusters["west"].calls == []
