"""syncMode OneTime: each cluster gets a profile once, whatever becomes of either later."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import BellhopError, InvalidError
from bellhop.operations.previews import preview_now
from bellhop.operations.redeployment import redeploy
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger
from tests.fakes.share import SHARE

ONCE = "syncMode: OneTime"
PRODUCTION = "clusterSelector: {matchLabels: {env: production}}"
NOBODY = "clusterSelector: {matchLabels: {env: none}}"


def said(kube: FakeKube) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each.get("data", {}).get("v") for each in kube.objects(CONFIG)
    }


def deploys(fleet: Fleet, value: str, *more: str, selected: str = PRODUCTION) -> None:
    """Apply a profile that is deployed once, and its present manifests."""
    contents = holder("own", config("one", f"v: '{value}'"), *map(config, more))
    fleet.deploy(join(profile(selected, more=ONCE), contents))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster that has the add-ons that are deployed once."""
    kube = fleet.register("east", env="production")
    deploys(fleet, "1")
    assert said(kube) == {"one": "1"}
    return kube


def test_what_changes_later_does_not_count(fleet: Fleet, east: FakeKube) -> None:
    """Neither a change nor an addition, a label or a resync; a new cluster gets the newest."""
    deploys(fleet, "2", "more")
    fleet.declare.label(EAST, {"tier": "gold"})
    fleet.resync(full=True)
    assert said(east) == {"one": "1"}
    outcome = fleet.status_of()
    assert outcome.phase == "Provisioned"
    assert list(preview_now(fleet.installation(), "own")) == []

    west = fleet.register("west", env="production")
    fleet.pump()

    assert said(west) == {"one": "2", "more": None}
    assert said(east) == {"one": "1"}


def test_deleted_objects_are_not_restored(fleet: Fleet, east: FakeKube) -> None:
    """They are their cluster's affair: no resync deploys them again, or asks for it."""
    east.drop(CONFIG, "default", "one")
    fleet.resync(full=True)

    assert said(east) == {}
    east.calls.clear()
    fleet.resync(full=True)
    assert not [call for call in east.calls if call.verb == "apply"]


def test_a_failure_is_no_success(fleet: Fleet, east: FakeKube) -> None:
    """Until all of it is there it is tried again, with the newest."""
    west = fleet.register("west", env="production")
    west.fail_with(InvalidError("cannot apply ConfigMap 'one': no"), "apply")
    fleet.pump()
    outcome = fleet.status_of("own", "fleet/west")
    assert outcome.phase.startswith("Failed")
    west.fail_with(None)
    deploys(fleet, "2")
    fleet.wait(timedelta(minutes=1))

    assert said(west) == {"one": "2"}
    assert said(east) == {"one": "1"}


def test_it_is_deployed_again_where_that_is_asked_for(fleet: Fleet, east: FakeKube) -> None:
    """By redeploy, once; then it is at rest again."""
    deploys(fleet, "2")
    redeploy(fleet.installation(), "own", EAST)
    fleet.pump()
    assert said(east) == {"one": "2"}

    deploys(fleet, "3")

    assert said(east) == {"one": "2"}


def test_it_goes_with_its_profile_and_comes_again(fleet: Fleet, east: FakeKube) -> None:
    """A deselected cluster loses it; one that is selected again gets it again."""
    deploys(fleet, "2", selected=NOBODY)
    assert said(east) == {}

    deploys(fleet, "3")

    assert said(east) == {"one": "3"}


@pytest.mark.rest
def test_a_withdrawal_that_dies_and_is_called_off_leaves_nobody_without(
    open_fleet: OpenFleet,
) -> None:
    """A cluster that has lost it is not taken for one that has it, at whichever step it dies.

    It takes seconds: it plays a share of 120 deaths, each in an installation of its own.
    """
    ends = set()
    for steps in range(1, 120, SHARE):
        fleet = open_fleet()
        east = fleet.register("east", env="production")
        deploys(fleet, "1")
        fate = rig.make_mortal(fleet)
        fleet.apply(profile(NOBODY, more=ONCE))
        rig.kill(fleet, fate, steps)
        fleet.apply(join(profile(more=ONCE), holder("own", config("one", "v: '2'"))))
        rig.settle(fleet)

        ends.add(said(east).get("one"))

    assert ends == {"1", "2"}


@pytest.mark.usefixtures("east")
def test_another_cluster_under_the_name_gets_it_too(fleet: Fleet) -> None:
    """A cluster that was created again has had nothing yet."""
    deploys(fleet, "2")
    anew = FakeKube(EAST)
    fleet.access.clusters[EAST] = anew
    fleet.resync(full=True)

    assert said(anew) == {"one": "2"}


def test_one_time_add_ons_of_a_trigger_stay_until_the_event_ends(fleet: Fleet) -> None:
    """A change of the object is ignored; its end removes its add-ons."""
    east = fleet.register("east", env="production")
    value = "v: '{{ .Resource.spec.ports }}'"
    fleet.apply(
        join(
            source(),
            trigger(more=ONCE),
            holder("made", config("{{ .Resource.metadata.name }}", value), annotations=INSTANTIATE),
        )
    )
    fleet.write("east", service("shop"))
    fleet.pump()
    before = said(east)
    assert set(before) == {"shop"}

    changed = fleet.write("east", service("shop", ports=[{"port": 1}]))
    fleet.pump()
    assert said(east) == before

    fleet.drop("east", changed)
    fleet.pump()

    assert said(east) == {}


def test_a_failing_preview_names_nothing_of_what_is_at_rest(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that has had it is not even asked."""
    deploys(fleet, "2")
    east.fail_with(BellhopError("cannot be asked"))

    assert list(preview_now(fleet.installation(), "own")) == []
