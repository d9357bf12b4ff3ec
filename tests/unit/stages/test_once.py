"""syncMode OneTime: each cluster gets a profile once, whatever becomes of either later."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import BellhopError, InvalidError
from bellhop.operations.previews import now
from bellhop.operations.redeployment import redeploy
from bellhop.state.messages import Resync
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.share import SHARE

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
ONCE = "syncMode: OneTime"
PRODUCTION = "clusterSelector: {matchLabels: {env: production}}"
NOBODY = "clusterSelector: {matchLabels: {env: none}}"


def said(kube: FakeKube) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each.get("data", {}).get("v") for each in kube.objects(CONFIG)
    }


def brings(fleet: Fleet, value: str, *more: str, selected: str = PRODUCTION) -> None:
    """Apply a profile that is deployed once, and what it brings now."""
    contents = holder("own", config("one", f"v: '{value}'"), *map(config, more))
    fleet.apply(join(profile(selected, more=ONCE), contents))
    fleet.pump()


def sweep(fleet: Fleet) -> None:
    fleet.publisher.publish([Resync(EAST, full=True)])
    fleet.pump()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """Register a cluster that has what was to be brought once."""
    kube = fleet.register("east", env="production")
    brings(fleet, "1")
    assert said(kube) == {"one": "1"}
    return kube


def test_what_changes_later_does_not_count(fleet: Fleet, east: FakeKube) -> None:
    """Neither a change nor an addition, a label or a sweep; who comes later gets the newest."""
    brings(fleet, "2", "more")
    fleet.declare.label(EAST, {"tier": "gold"})
    sweep(fleet)
    assert said(east) == {"one": "1"}
    outcome = fleet.records.outcomes.get(EAST, "own")
    assert outcome
    assert outcome.value.phase == "Provisioned"
    assert list(now(fleet.installation(), "own")) == []

    west = fleet.register("west", env="production")
    fleet.pump()

    assert said(west) == {"one": "2", "more": None}
    assert said(east) == {"one": "1"}


def test_what_is_lost_is_not_put_back(fleet: Fleet, east: FakeKube) -> None:
    """What becomes of it is its cluster's affair: no sweep brings it again, or asks for it."""
    east.drop(CONFIG, "default", "one")
    sweep(fleet)

    assert said(east) == {}
    east.calls.clear()
    sweep(fleet)
    assert not [call for call in east.calls if call.verb == "apply"]


def test_a_failure_is_no_success(fleet: Fleet, east: FakeKube) -> None:
    """Until all of it is there it is tried again, with the newest."""
    west = fleet.register("west", env="production")
    west.fail_with(InvalidError("cannot apply ConfigMap 'one': no"), "apply")
    fleet.pump()
    outcome = fleet.records.outcomes.get("fleet/west", "own")
    assert outcome
    assert outcome.value.phase.startswith("Failed")
    west.fail_with(None)
    brings(fleet, "2")
    fleet.clock.advance(timedelta(minutes=1))
    fleet.pump()

    assert said(west) == {"one": "2"}
    assert said(east) == {"one": "1"}


def test_it_is_brought_again_where_that_is_asked_for(fleet: Fleet, east: FakeKube) -> None:
    """By redeploy, once; then it is at rest again."""
    brings(fleet, "2")
    redeploy(fleet.installation(), "own", EAST)
    fleet.pump()
    assert said(east) == {"one": "2"}

    brings(fleet, "3")

    assert said(east) == {"one": "2"}


def test_it_goes_with_its_profile_and_comes_again(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that is no longer meant loses it; one that is meant again gets it anew."""
    brings(fleet, "2", selected=NOBODY)
    assert said(east) == {}

    brings(fleet, "3")

    assert said(east) == {"one": "3"}


@pytest.mark.rest
@pytest.mark.parametrize("offset", range(6)[::SHARE])
def test_a_withdrawal_that_dies_and_is_called_off_leaves_nobody_without(
    tmp_path: Path, offset: int
) -> None:
    """Wherever it dies: a cluster that has lost it is not taken for one that has it.

    It takes seconds: it plays some fifteen deaths, each in an installation of its own.
    """
    ends = set()
    for steps in range(1 + offset, 90, 6):
        fleet = Fleet(tmp_path / f"{offset}-{steps}")
        east, fate = fleet.register("east", env="production"), Fate()
        brings(fleet, "1")
        rig.interpose(fleet, lambda name, port, fate=fate: Mortal(name, port, fate))
        fleet.access.clusters = {EAST: east}
        fleet.apply(profile(NOBODY, more=ONCE))
        fate.doom(steps)
        with suppress(Killed):
            fleet.pump()
        fate.revive()
        fleet.reread()
        fleet.apply(join(profile(more=ONCE), holder("own", config("one", "v: '2'"))))
        rig.release(fleet)
        for _ in range(3):
            fleet.clock.advance(timedelta(seconds=130))
            rig.tick(fleet)
            fleet.pump()

        ends.add(said(east).get("one"))
        fleet.close()

    assert ends == {"1", "2"}


@pytest.mark.usefixtures("east")
def test_another_cluster_under_the_name_gets_it_too(fleet: Fleet) -> None:
    """One that was made anew has had nothing yet."""
    brings(fleet, "2")
    anew = FakeKube(EAST)
    fleet.access.clusters[EAST] = anew
    sweep(fleet)

    assert said(anew) == {"one": "2"}


def test_what_a_trigger_brings_once_stays_until_its_event_ends(fleet: Fleet) -> None:
    """A change of the object is passed over; its end takes away what it brought."""
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
    brings(fleet, "2")
    east.fail_with(BellhopError("cannot be asked"))

    assert list(now(fleet.installation(), "own")) == []
