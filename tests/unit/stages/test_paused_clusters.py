"""Paused clusters: nothing is changed in them, and all that waits goes on once they are resumed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.diagnosis import overview
from bellhop.operations.pause import open_always, open_in, pause
from bellhop.operations.redeployment import redeploy
from bellhop.profiles.records.pending_removals import Place
from bellhop.state.delays import opening_timer, retry_timer
from bellhop.state.messages import Apply, Instantiate, Resync
from bellhop.state.record import DeploymentStatus
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
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

CONFIG = GVK("", "v1", "ConfigMap")
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
    kept = fleet.records.outcomes.get(cluster, name)
    assert kept
    return kept.value


def paused(fleet: Fleet, cluster: str = EAST, *, is_so: bool = True) -> None:
    assert pause(fleet.installation(), cluster, paused=is_so) == "configured"
    fleet.pump()


def written(kube: FakeKube) -> list[str]:
    """Return what was written to a cluster for add-ons, and not that it may ring."""
    ours = {"ValidatingWebhookConfiguration", "ClusterRole"}
    return [each.verb for each in kube.calls if each.verb in WRITES and each.gvk.kind not in ours]


def test_what_is_new_waits_until_the_cluster_is_resumed(fleet: Fleet, east: FakeKube) -> None:
    """Of all that was declared meanwhile the newest comes, once; another cluster has it at once."""
    west = fleet.register("west", env="production")
    fleet.apply(own())
    fleet.pump()
    paused(fleet)
    east.calls.clear()

    for v in "234":
        fleet.apply(own(v))
        fleet.pump()
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
    """A pause alone, a sweep or a message that comes again changes no outcome."""
    fleet.apply(own())
    fleet.pump()
    before = outcome(fleet)
    paused(fleet)
    fleet.publisher.publish([Resync(EAST, full=True), Apply("", "", "own", EAST)])
    fleet.pump()

    assert outcome(fleet) == before
    assert overview.health(fleet.installation(), EAST).state == "Healthy"


def test_a_profile_that_is_deleted_leaves_once_it_is_resumed(fleet: Fleet, east: FakeKube) -> None:
    """It is told until then that it waits; nothing is left of it in the end."""
    fleet.apply(own())
    fleet.pump()
    paused(fleet)
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

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
    fleet.apply(own())
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert fleet.records.outcomes.get(EAST, "own") is None
    assert not fleet.records.profiles.head("", "", "own")
    assert version(east) is None


def test_drift_is_put_back_once_it_is_resumed(fleet: Fleet, east: FakeKube) -> None:
    """What others change in a paused cluster stays as long as it is paused."""
    fleet.apply(own(more="syncMode: ContinuousWithDriftDetection"))
    fleet.pump()
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
    """What users ask for by hand is no exception; nothing of it is forgotten."""
    fleet.apply(own())
    fleet.pump()
    paused(fleet)
    there = [each for each in east.objects(CONFIG) if each["metadata"]["name"] == "own"]
    east.put({**there[0], "data": {"v": "theirs"}})
    redeploy(fleet.installation(), "own")
    fleet.pump()
    assert version(east) == "theirs"

    paused(fleet, is_so=False)
    assert version(east) == "1"


def test_checks_are_not_asked(fleet: Fleet, east: FakeKube) -> None:
    """Whether a cluster is ready or well is asked once it takes changes."""
    check = (
        "preDeployChecks: [{name: ready, featureID: Resources, group: '', version: v1, kind:"
        " Service, script: 'function evaluate() return {healthy=false} end'}]"
    )
    paused(fleet)
    east.calls.clear()
    fleet.apply(own(more=check))
    fleet.pump()

    assert outcome(fleet).reason == "Paused"
    assert [each for each in east.calls if each.verb == "list"] == []
    paused(fleet, is_so=False)
    assert outcome(fleet).reason == "Unmet"


def test_a_dry_run_is_made_all_the_same(fleet: Fleet, east: FakeKube) -> None:
    """It changes nothing, and says what is going to be."""
    paused(fleet)
    fleet.apply(own(more="syncMode: DryRun"))
    fleet.pump()

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
    fleet.declare.delete([("EventTrigger", "", "made")])
    fleet.pump()

    assert made(west) == []


def test_a_paused_cluster_can_be_deregistered(fleet: Fleet, east: FakeKube) -> None:
    """What waited for it waits no more, and nothing is left of it."""
    fleet.apply(own())
    fleet.pump()
    paused(fleet)
    fleet.apply(own("2"))
    fleet.pump()
    fleet.declare.deregister(EAST)
    fleet.pump()

    assert fleet.records.outcomes.get(EAST, "own") is None
    assert next(overview.statuses(fleet.installation())).profile.destinations == ()
    assert version(east) == "1"


def test_pausing_again_changes_nothing(fleet: Fleet, east: FakeKube) -> None:
    """Nor does resuming what is not paused."""
    del east
    here = fleet.installation()
    assert pause(here, EAST, paused=False) == "unchanged"
    paused(fleet)
    before = fleet.records.clusters.get(EAST)

    assert pause(here, EAST, paused=True) == "unchanged"
    assert fleet.records.clusters.get(EAST) == before


# Steps -------------------------------------------------------------------------------------------


def rollout(v: str) -> str:
    return own(v, more="maxUpdate: 1")


def test_a_roll_out_goes_past_a_paused_cluster(fleet: Fleet, east: FakeKube) -> None:
    """It takes no place from others, before its turn or at it; it has its turn once resumed."""
    west, far = (fleet.register(name, env="production") for name in ("west", "yonder"))
    fleet.apply(rollout("1"))
    fleet.pump()
    paused(fleet)
    fleet.apply(rollout("2"))
    fleet.pump()
    assert [version(each) for each in (east, west, far)] == ["1", "2", "2"]

    paused(fleet, is_so=False)
    assert version(east) == "2"
    assert rig.left_over(fleet) == []


def test_a_cluster_that_is_paused_at_its_turn_gives_it_back(fleet: Fleet, east: FakeKube) -> None:
    """It keeps its place while it fails, and not while it is paused."""
    west = fleet.register("west", env="production")
    fleet.apply(own("1", more="maxUpdate: 1\n  " + never()))
    fleet.pump()
    assert (version(east), version(west)) == (None, None)
    place = Place("", "", "own")
    kept = fleet.records.rotas.get(place)
    assert kept
    [first] = kept.value.at_work

    paused(fleet, first)
    # What is tried again soon waits in the queue.
    fleet.clock.advance(10 * SECOND)
    fleet.pump()
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
    open_in(fleet.installation(), EAST, f"0 {opens.hour} * * *", f"0 {closes.hour} * * *")
    fleet.pump()
    return opens


def test_what_waits_goes_on_when_the_window_opens(fleet: Fleet, east: FakeKube) -> None:
    """The newest of it, once, by nothing but the timers that were set; then it waits anew."""
    opens = windowed(fleet)
    for v in "12":
        fleet.apply(own(v))
        fleet.pump()
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
    fleet.apply(own("3"))
    fleet.pump()
    assert version(east) == "2"
    at(fleet, opens + timedelta(days=1))
    assert version(east) == "3"


def test_events_count_again_when_the_window_opens(fleet: Fleet, east: FakeKube) -> None:
    """Of a cluster that is paused as their source, however many there were."""
    fleet.apply(
        join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
    )
    fleet.pump()
    opens = windowed(fleet)
    for name in ("a", "b"):
        fleet.write("east", service(name))
        fleet.pump()
    assert made(east) == []
    timer = fleet.records.timers.get(opening_timer("made", EAST))
    assert timer
    assert timer.value.at == opens

    at(fleet, opens)
    assert made(east) == ["for-a", "for-b"]
    assert fleet.records.timers.get(opening_timer("made", EAST)) is None


def test_clocks_need_not_agree_on_when_it_opens(fleet: Fleet, east: FakeKube) -> None:
    """Whoever is asked seconds before keeps the message: no timer, once fired, need be set anew."""
    opens = windowed(fleet)
    fleet.apply(own())
    fleet.clock.advance(opens - fleet.clock.now() - 2 * SECOND)
    fleet.pump()
    assert version(east) is None
    fleet.records.timers.cancel(retry_timer(EAST, "own"))

    fleet.clock.advance(2 * SECOND)
    fleet.pump()
    assert version(east) == "1"


def test_another_window_or_none_counts_at_once(fleet: Fleet, east: FakeKube) -> None:
    """What waited for the old one is looked at again."""
    opens = windowed(fleet)
    fleet.apply(own())
    fleet.pump()
    later = opens + timedelta(hours=2)
    open_in(fleet.installation(), EAST, f"0 {later.hour} * * *", f"30 {later.hour} * * *")
    fleet.pump()
    assert outcome(fleet).retry_at == later
    at(fleet, opens)
    assert version(east) is None

    open_always(fleet.installation(), EAST)
    fleet.pump()
    assert version(east) == "1"
    assert fleet.records.timers.get(retry_timer(EAST, "own")) is None


def test_a_pause_by_hand_lasts_beyond_the_window(fleet: Fleet, east: FakeKube) -> None:
    """What opens does not resume; who resumes does not open."""
    opens = windowed(fleet)
    paused(fleet)
    fleet.apply(own())
    fleet.pump()
    assert outcome(fleet).retry_at is None
    at(fleet, opens)
    assert version(east) is None

    at(fleet, opens + timedelta(hours=1))
    paused(fleet, is_so=False)
    assert version(east) is None
    assert outcome(fleet).retry_at == opens + timedelta(days=1)
