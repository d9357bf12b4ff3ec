"""Paused clusters: nothing is changed in them, and all that waits goes on once they are resumed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from bellhop.diagnosis import cluster_status, profile_status
from bellhop.operations.pause import clear_window, pause_cluster, set_window
from bellhop.operations.redeployment import redeploy
from bellhop.profiles.records import Place
from bellhop.state.delays import opening_timer, retry_timer
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.messages import Apply, Instantiate, Resync
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
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

EAST, WEST = "fleet/east", "fleet/west"
WRITES = {"apply", "delete", "remove", "merge", "patch", "replace", "restart"}
SECOND = timedelta(seconds=1)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    kube = fleet.register("east", env="production")
    fleet.pump()
    return kube


def own(v: str = "1", more: str = "", **how: Any) -> str:
    return join(profile(more=more, **how), holder("own", config("own", f"v: '{v}'")))


def version(kube: FakeKube, name: str = "own") -> str | None:
    found = [each for each in kube.objects(CONFIG) if each["metadata"]["name"] == name]
    return found[0]["data"]["v"] if found else None


def made(kube: FakeKube) -> list[str]:
    found = {each["metadata"]["name"] for each in kube.objects(CONFIG)}
    return sorted(name for name in found if name.startswith("for-"))


def outcome(fleet: Fleet, cluster: str = EAST, name: str = "own") -> DeploymentStatus:
    return fleet.status_of(name, cluster)


def paused(fleet: Fleet, cluster: str = EAST, *, is_so: bool = True) -> None:
    assert pause_cluster(fleet.installation(), cluster, paused=is_so) == "configured"
    fleet.pump()


def written(kube: FakeKube) -> list[str]:
    """Return the writes to a cluster for add-ons, without those for its events."""
    ours = {"ValidatingWebhookConfiguration", "ClusterRole"}
    return [each.verb for each in kube.calls if each.verb in WRITES and each.gvk.kind not in ours]


def test_what_is_new_waits_until_the_cluster_is_resumed(fleet: Fleet, east: FakeKube) -> None:
    """Of all that was declared meanwhile the newest comes, once; another cluster has it at once."""
    west = fleet.register("west", env="production")
    fleet.deploy(own())
    paused(fleet)
    east.calls.clear()

    for v in "234":
        fleet.deploy(own(v))
    assert (version(east), version(west)) == ("1", "4")
    assert written(east) == []
    found = outcome(fleet)
    assert (found.phase, found.reason, found.retry_at) == ("Provisioning", "Paused", None)
    said = "cannot deploy 'own' to 'fleet/east' yet: the cluster is paused until `bellhop resume`"
    assert found.message == said

    paused(fleet, is_so=False)
    assert version(east) == "4"
    assert (outcome(fleet).phase, outcome(fleet).message) == ("Provisioned", "")
    assert len([each for each in written(east) if each == "apply"]) == 1


@pytest.mark.usefixtures("east")
def test_what_is_as_it_is_wanted_does_not_wait(fleet: Fleet) -> None:
    """A pause, a resync or a repeated message changes no outcome by itself."""
    fleet.deploy(own())
    before = outcome(fleet)
    paused(fleet)
    fleet.publisher.publish([Resync(EAST, full=True), Apply("", "", "own", EAST)])
    fleet.pump()

    assert outcome(fleet) == before
    assert cluster_status.read_health(fleet.installation(), EAST).state == "Healthy"


def test_a_profile_that_is_deleted_leaves_once_it_is_resumed(fleet: Fleet, east: FakeKube) -> None:
    """Until then its status says that it waits; in the end nothing is left."""
    fleet.deploy(own())
    paused(fleet)
    fleet.delete("ClusterProfile", "own")

    assert version(east) == "1"
    found = outcome(fleet)
    assert (found.phase, found.reason) == ("Removing", "Paused")
    assert found.message.startswith("cannot withdraw 'own' from 'fleet/east' yet: the cluster is")

    paused(fleet, is_so=False)
    assert version(east) is None
    assert fleet.records.outcomes.get(EAST, "own") is None
    assert rig.left_over(fleet) == []


def test_what_never_came_leaves_at_once(fleet: Fleet, east: FakeKube) -> None:
    """Of a profile that waited for the cluster nothing is there that could be removed."""
    paused(fleet)
    fleet.deploy(own())
    fleet.delete("ClusterProfile", "own")

    assert fleet.records.outcomes.get(EAST, "own") is None
    assert not fleet.records.profiles.head("", "", "own")
    assert version(east) is None


def test_drift_is_corrected_once_the_cluster_is_resumed(fleet: Fleet, east: FakeKube) -> None:
    """Changes in a paused cluster stay as long as it is paused."""
    fleet.deploy(own(more="syncMode: ContinuousWithDriftDetection"))
    paused(fleet)
    [there] = [each for each in east.objects(CONFIG) if each["metadata"]["name"] == "own"]
    east.put({**there, "data": {"v": "theirs"}})
    key = f"/ConfigMap/{there['metadata']['namespace']}/own"
    fleet.publisher.publish([Apply("", "", "own", EAST, touched=key)])
    fleet.pump()

    assert version(east) == "theirs"
    assert outcome(fleet).reason == "Paused"
    paused(fleet, is_so=False)
    assert version(east) == "1"


def test_a_redeploy_waits(fleet: Fleet, east: FakeKube) -> None:
    """A request by hand is no exception, and is not forgotten."""
    fleet.deploy(own())
    paused(fleet)
    there = [each for each in east.objects(CONFIG) if each["metadata"]["name"] == "own"]
    east.put({**there[0], "data": {"v": "theirs"}})
    redeploy(fleet.installation(), "own")
    fleet.pump()
    assert version(east) == "theirs"

    paused(fleet, is_so=False)
    assert version(east) == "1"


def test_checks_are_not_asked(fleet: Fleet, east: FakeKube) -> None:
    """They run once the cluster takes changes."""
    check = (
        "preDeployChecks: [{name: ready, featureID: Resources, group: '', version: v1, kind:"
        " Service, script: 'function evaluate() return {healthy=false} end'}]"
    )
    paused(fleet)
    east.calls.clear()
    fleet.deploy(own(more=check))

    assert outcome(fleet).reason == "Paused"
    assert [each for each in east.calls if each.verb == "list"] == []
    paused(fleet, is_so=False)
    assert outcome(fleet).reason == "Unmet"


def test_a_dry_run_is_made_all_the_same(fleet: Fleet, east: FakeKube) -> None:
    """It changes nothing, and says what is going to be."""
    paused(fleet)
    fleet.deploy(own(more="syncMode: DryRun"))

    assert (outcome(fleet).phase, version(east)) == ("DryRun", None)


@pytest.mark.usefixtures("east")
def test_what_happens_in_a_paused_cluster_makes_nothing(fleet: Fleet) -> None:
    """Nor does what ends there end anything, here or elsewhere; all is made good in the end."""
    west = fleet.register("west", env="production", role="hub")
    to_west = "destinationClusterSelector: {matchLabels: {role: hub}}"
    fleet.apply(
        join(
            source(),
            trigger(more=to_west),
            holder("made", config(FOR_EACH), annotations=INSTANTIATE),
        )
    )
    old = fleet.write("east", service("old"))
    fleet.pump()
    assert made(west) == ["for-old"]
    paused(fleet)

    fleet.write("east", service("new"))
    fleet.drop("east", old)
    fleet.pump()
    fleet.publisher.publish([Instantiate("made", EAST), Resync(EAST, full=True)])
    fleet.pump()
    assert made(west) == ["for-old"]

    fleet.write("west", service("here"))
    fleet.pump()
    assert made(west) == ["for-here", "for-old"]

    paused(fleet, is_so=False)
    assert made(west) == ["for-here", "for-new"]


@pytest.mark.usefixtures("east")
def test_a_trigger_that_is_deleted_ends_what_it_made(fleet: Fleet) -> None:
    """That its events' cluster is paused keeps it from no other cluster."""
    west = fleet.register("west", role="hub")
    to_west = "destinationClusterSelector: {matchLabels: {role: hub}}"
    text = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(source(), trigger(more=to_west), text))
    fleet.write("east", service("web"))
    fleet.pump()
    paused(fleet)
    fleet.delete("EventTrigger", "made")

    assert made(west) == []


def test_a_paused_cluster_can_be_deregistered(fleet: Fleet, east: FakeKube) -> None:
    """Nothing waits for it any more, and no record of it is left."""
    fleet.deploy(own())
    paused(fleet)
    fleet.deploy(own("2"))
    fleet.declare.deregister(EAST)
    fleet.pump()

    assert fleet.records.outcomes.get(EAST, "own") is None
    assert next(profile_status.read_statuses(fleet.installation())).profile.destinations == ()
    assert version(east) == "1"


def test_pausing_again_changes_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Nor does resuming what is not paused."""
    del east
    here = fleet.installation()
    assert pause_cluster(here, EAST, paused=False) == "unchanged"
    paused(fleet)
    before = fleet.records.clusters.get(EAST)

    assert pause_cluster(here, EAST, paused=True) == "unchanged"
    assert fleet.records.clusters.get(EAST) == before


# Steps -------------------------------------------------------------------------------------------


def rollout(v: str) -> str:
    return own(v, more="maxUpdate: 1")


def test_a_roll_out_goes_past_a_paused_cluster(fleet: Fleet, east: FakeKube) -> None:
    """It takes no place from others, before its turn or at it; it has its turn once resumed."""
    west, far = (fleet.register(name, env="production") for name in ("west", "yonder"))
    fleet.deploy(rollout("1"))
    paused(fleet)
    fleet.deploy(rollout("2"))
    assert [version(each) for each in (east, west, far)] == ["1", "2", "2"]

    paused(fleet, is_so=False)
    assert version(east) == "2"
    assert rig.left_over(fleet) == []


def test_a_cluster_that_is_paused_at_its_turn_gives_it_back(fleet: Fleet, east: FakeKube) -> None:
    """It keeps its place while it fails, and not while it is paused."""
    west = fleet.register("west", env="production")
    fleet.deploy(own("1", more="maxUpdate: 1\n  " + never()))
    assert (version(east), version(west)) == (None, None)
    place = Place("", "", "own")
    kept = fleet.records.rotas.get(place)
    assert kept
    [first] = kept.value.at_work

    paused(fleet, first)
    # What is tried again soon waits in the queue.
    fleet.wait(10 * SECOND)
    kept = fleet.records.rotas.get(place)
    assert kept
    assert {*kept.value.at_work} == {EAST, WEST} - {first}


def never() -> str:
    return (
        "preDeployChecks: [{name: ready, featureID: Resources, group: '', version: v1, kind:"
        " Namespace, script: 'function evaluate() return {healthy=false, message=\"no\"} end'}]"
    )


# Windows -----------------------------------------------------------------------------------------


def at(fleet: Fleet, moment: datetime) -> None:
    """Turn the clock, and let the schedule tick."""
    fleet.clock.advance(moment - fleet.clock.now())
    rig.tick(fleet)
    fleet.pump()


def windowed(fleet: Fleet) -> datetime:
    """Give a cluster a window that is closed now, and return when it opens."""
    now = fleet.clock.now()
    opens = (now + timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
    closes = opens + timedelta(hours=1)
    set_window(fleet.installation(), EAST, f"0 {opens.hour} * * *", f"0 {closes.hour} * * *")
    fleet.pump()
    return opens


def test_what_waits_goes_on_when_the_window_opens(fleet: Fleet, east: FakeKube) -> None:
    """The newest revision, once, by the timers that were set; later ones wait again."""
    opens = windowed(fleet)
    for v in "12":
        fleet.deploy(own(v))
    found = outcome(fleet)
    assert (found.phase, found.reason, found.retry_at) == ("Provisioning", "Paused", opens)
    assert found.message.endswith(
        f"paused until {opens:%Y-%m-%d %H:%M} UTC, when its maintenance window opens"
    )

    at(fleet, opens - timedelta(minutes=1))
    assert version(east) is None
    at(fleet, opens)
    assert version(east) == "2"
    assert (outcome(fleet).phase, outcome(fleet).retry_at) == ("Provisioned", None)
    assert fleet.records.timers.get(retry_timer(EAST, "own")) is None

    at(fleet, opens + timedelta(hours=1))
    fleet.deploy(own("3"))
    assert version(east) == "2"
    at(fleet, opens + timedelta(days=1))
    assert version(east) == "3"


def test_events_count_again_when_the_window_opens(fleet: Fleet, east: FakeKube) -> None:
    """Of a cluster that is paused as their source, however many there were."""
    fleet.deploy(
        join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
    )
    opens = windowed(fleet)
    for name in ("a", "b"):
        fleet.write("east", service(name))
        fleet.pump()
    assert made(east) == []
    timer = require_value(fleet.records.timers.get(opening_timer("made", EAST)))
    assert timer.at == opens

    at(fleet, opens)
    assert made(east) == ["for-a", "for-b"]
    assert fleet.records.timers.get(opening_timer("made", EAST)) is None


def test_clocks_need_not_agree_on_when_it_opens(fleet: Fleet, east: FakeKube) -> None:
    """A worker called seconds before keeps the message: no fired timer has to be set again."""
    opens = windowed(fleet)
    fleet.apply(own())
    fleet.wait(opens - fleet.clock.now() - 2 * SECOND)
    assert version(east) is None
    fleet.records.timers.cancel(retry_timer(EAST, "own"))

    fleet.wait(2 * SECOND)
    assert version(east) == "1"


def test_another_window_or_none_counts_at_once(fleet: Fleet, east: FakeKube) -> None:
    """Profiles that waited for the old one are checked again."""
    opens = windowed(fleet)
    fleet.deploy(own())
    later = opens + timedelta(hours=2)
    set_window(fleet.installation(), EAST, f"0 {later.hour} * * *", f"30 {later.hour} * * *")
    fleet.pump()
    assert outcome(fleet).retry_at == later
    at(fleet, opens)
    assert version(east) is None

    clear_window(fleet.installation(), EAST)
    fleet.pump()
    assert version(east) == "1"
    assert fleet.records.timers.get(retry_timer(EAST, "own")) is None


def test_a_pause_by_hand_lasts_beyond_the_window(fleet: Fleet, east: FakeKube) -> None:
    """An open window does not resume a cluster; resuming does not open a window."""
    opens = windowed(fleet)
    paused(fleet)
    fleet.deploy(own())
    assert outcome(fleet).retry_at is None
    at(fleet, opens)
    assert version(east) is None

    at(fleet, opens + timedelta(hours=1))
    paused(fleet, is_so=False)
    assert version(east) is None
    assert outcome(fleet).retry_at == opens + timedelta(days=1)
