"""Objects of a profile that is removed, which are deleted and still exist."""

from __future__ import annotations

import pytest

from bellhop.cli.deployed import AddOnFilter, list_addons
from bellhop.cli.views.profiles import VIEWS
from bellhop.cli.views.view import Query
from bellhop.core.gvk import ObjectKey
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile

KEY = ObjectKey(CONFIG, "default", "web").identity
WAITS = (
    "waits until ConfigMap 'default/web' on cluster 'fleet/east' is deleted:"
    " finalizer 'shop.example/books' has kept it since 2026-01-01 12:00:00 UTC"
)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Deploy two objects to a cluster, and let a finalizer keep one of them."""
    east = fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", config("web"), config("other"))))
    made = east.get(CONFIG, "default", "web")
    assert made
    east.put({**made, "metadata": {**made["metadata"], "finalizers": ["shop.example/books"]}})
    return east


def wait(fleet: Fleet) -> None:
    fleet.wait(fleet.settings.retry_ceiling * 2)


def outcome(fleet: Fleet) -> DeploymentStatus | None:
    kept = fleet.records.outcomes.get(EAST, "own")
    return kept.value if kept else None


def test_a_profile_is_removing_until_its_last_object_is_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its status names the object and what keeps it; the others are deleted at once."""
    fleet.delete("ClusterProfile", "own")
    wait(fleet)

    found = outcome(fleet)
    assert found
    assert (found.phase, found.message) == ("Removing", WAITS)
    assert east.get(CONFIG, "default", "other") is None
    deletions = [call.name for call in east.calls if call.verb == "remove"]
    assert sorted(deletions) == ["other", "web"]

    [listed] = VIEWS["clusterprofile"].rows(fleet.installation(), Query())
    assert listed["state"] == "Removing"
    assert listed["message"] == f"it is still to be removed from '{EAST}': {WAITS}"
    [addon] = list_addons(fleet.installation(), AddOnFilter())
    assert (addon["name"], addon["state"]) == ("web", "Removing")

    east.drop(CONFIG, "default", "web")
    wait(fleet)

    assert list(VIEWS["clusterprofile"].rows(fleet.installation(), Query())) == []
    assert outcome(fleet) is None
    assert fleet.records.profiles.head("", "", "own") is None
    assert fleet.records.owners.get(EAST, KEY) is None


def test_an_object_is_recreated_once_the_terminating_one_is_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """A write to the terminating object would be lost with it."""
    fleet.delete("ClusterProfile", "own")
    fleet.apply(join(profile(), holder("own", config("web"), config("other"))))
    wait(fleet)

    found = outcome(fleet)
    assert found
    assert found.phase == "Failed"
    assert "is terminating and will be re-created" in found.message

    east.drop(CONFIG, "default", "web")
    wait(fleet)

    found = outcome(fleet)
    assert found
    assert found.phase == "Provisioned"
    assert east.get(CONFIG, "default", "web")


def test_an_object_that_a_profile_has_no_longer_keeps_nothing_back(
    fleet: Fleet, east: FakeKube
) -> None:
    """The profile stays in the cluster, and is deployed without it."""
    fleet.deploy(join(profile(), holder("own", config("other"))))

    found = outcome(fleet)
    assert found
    assert found.phase == "Provisioned"
    there = east.get(CONFIG, "default", "web")
    assert there
    assert there["metadata"]["deletionTimestamp"]
