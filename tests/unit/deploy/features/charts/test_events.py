"""Events that come while Helm works on a release, and what they delay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.deploy.lease import Peers
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import BellhopError, InvalidError, TemporaryError
from bellhop.ports.charts import DEPLOYED
from bellhop.state.deployment import Watch
from bellhop.state.messages import Apply, ScanDrift
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.releases import CONFIG, chart, charts, data

KEY = (EAST, "apps", "web")
TOUCHED = Apply("", "", "p", EAST, touched="/ConfigMap/apps/web-config")
PLAIN = Apply("", "", "p", EAST)
WATCHED = "syncMode: ContinuousWithDriftDetection"


def take(fleet: Fleet, inbox: str) -> None:
    """Work on one message of an inbox, as another worker does."""
    fleet.work(inbox, fleet.queues[inbox].receive(1, wait=timedelta(0)))


@pytest.mark.parametrize("event", [TOUCHED, PLAIN], ids=["an event", "a change"])
def test_an_event_during_an_upgrade_delays_no_later_change(
    fleet: Fleet, east: FakeKube, event: Apply
) -> None:
    """Helm's own writes send events: a message that meets the lease waits for Helm, not for it."""

    def arrive() -> None:
        fleet.publisher.publish([event])
        take(fleet, "apply")

    fleet.deploy(charts())
    fleet.repositories.meanwhile.append(arrive)
    fleet.deploy(charts(of=chart(values="replicas: two")))
    fleet.deploy(charts(of=chart(values="replicas: three")))

    assert data(east)["web-config"]["replicas"] == "three"
    assert len(fleet.charts.deployed) == 3
    assert fleet.queues["apply"].backlog().waiting == 0


def test_a_release_that_two_profiles_want_goes_from_one_to_the_other_and_ends(
    fleet: Fleet, east: FakeKube
) -> None:
    """Neither the second one nor the end of both waits for a lease, though Helm sends events."""

    def arrive() -> None:
        fleet.publisher.publish([TOUCHED, replace(TOUCHED, profile="second")])
        for _ in range(2):
            take(fleet, "apply")

    fleet.deploy(charts())
    fleet.deploy(charts("second", of=chart(values="replicas: two")))
    fleet.charts.meanwhile.append(arrive)
    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.pump()
    assert data(east)["web-config"]["replicas"] == "two"
    assert fleet.charts.removals == []

    fleet.declare.delete([("ClusterProfile", "", "second")])
    fleet.release()
    fleet.pump()
    assert data(east) == {}


def test_a_release_whose_record_others_wrote_delays_no_later_change(
    fleet: Fleet, east: FakeKube
) -> None:
    """A cluster that is registered again makes all uncertain; the lease of who works there ends."""
    fleet.deploy(charts())
    fleet.charts.meanwhile.append(lambda: fleet.records.doubt_holdings(EAST))
    fleet.deploy(charts(of=chart(values="replicas: two")))
    fleet.deploy(charts(of=chart(values="replicas: three")))

    assert data(east)["web-config"]["replicas"] == "three"


def test_values_that_are_corrected_wait_for_no_retry_of_those_that_failed(
    fleet: Fleet, east: FakeKube
) -> None:
    """In one process the timer has the retry, so that nothing waits behind it in the queue."""
    fleet.peers = Peers("ours")
    fleet.reread()
    fleet.deploy(charts())
    for values in ("two", "three"):
        fleet.charts.failures["web"] = InvalidError("refused")
        fleet.deploy(charts(of=chart(values="replicas: wrong")))
        fleet.charts.failures.clear()
        fleet.deploy(charts(of=chart(values=f"replicas: {values}")))
        assert data(east)["web-config"]["replicas"] == values

    deployed = len(fleet.charts.deployed)
    fleet.wait(timedelta(minutes=1))
    assert len(fleet.charts.deployed) == deployed


@pytest.mark.usefixtures("east")
def test_who_loses_a_lease_ends_no_other_one(fleet: Fleet) -> None:
    """Its objects are added to the record of the present lease holder, as uncertain."""

    def take_over() -> None:
        kept = fleet.records.inventories.get(EAST, "p")
        assert kept
        assert kept.value.until
        late = kept.value.until + timedelta(seconds=1)
        fleet.records.inventories.put(
            replace(kept.value, worker="another.1", until=late), expect=kept.token
        )

    fleet.deploy(charts())
    fleet.charts.meanwhile.append(take_over)
    fleet.deploy(charts(of=chart(values="replicas: two")))

    kept = fleet.records.inventories.get(EAST, "p")
    assert kept
    assert kept.value.worker == "another.1"
    assert not any(each.digest for each in kept.value.held.values())


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(("status", "deployments"), [(DEPLOYED, 2), ("failed", 1)])
def test_a_release_that_somebody_rolls_back_is_deployed_again(
    fleet: Fleet, status: str, deployments: int
) -> None:
    """Another Helm writes the same fields by the same name; only its record shows a rollback.

    A revision that failed has replaced none.
    """
    fleet.deploy(charts(more=WATCHED))
    fleet.publisher.publish([TOUCHED])
    fleet.pump()
    assert len(fleet.charts.deployed) == 1

    rolled_back = replace(fleet.charts.releases[KEY], revision=2, status=status)
    fleet.charts.releases[KEY] = rolled_back
    fleet.publisher.publish([TOUCHED])
    fleet.pump()
    assert len(fleet.charts.deployed) == deployments


@pytest.mark.usefixtures("east")
def test_a_rollback_of_which_no_event_came_is_found_by_a_resync(fleet: Fleet) -> None:
    """It reads Helm's record of each release whose objects are to stay as they were deployed."""
    fleet.deploy(charts(more=WATCHED))
    for _ in range(2):
        fleet.publisher.publish([ScanDrift(EAST, held=True)])
        fleet.pump()
    assert len(fleet.charts.deployed) == 1

    fleet.charts.releases[KEY] = replace(fleet.charts.releases[KEY], revision=2)
    for _ in range(2):
        fleet.publisher.publish([ScanDrift(EAST, held=True)])
        fleet.pump()
    assert len(fleet.charts.deployed) == 2


def test_objects_of_a_watched_release_send_events(fleet: Fleet, east: FakeKube) -> None:
    """Also of a kind that was watched before, of which other objects have Bellhop's label."""
    watching = DriftWatches(fleet.records, fleet.publisher)
    fleet.deploy(join(profile(name="own", more=WATCHED), holder("own", config("one"))))
    assert watching.kinds(EAST) == ([CONFIG], frozenset())
    sweeps = [call for call in east.calls if call.verb == "list"]

    fleet.deploy(charts(more=WATCHED))
    assert watching.kinds(EAST) == ([CONFIG], frozenset({CONFIG}))
    assert len([call for call in east.calls if call.verb == "list"]) > len(sweeps)


def test_a_watch_of_a_former_version_is_taken_for_one_of_charts() -> None:
    """It does not say which of its kinds objects of releases have."""
    assert Watch(EAST, "p", "", "", (CONFIG,)).of_charts == (CONFIG,)
    assert Watch(EAST, "p", "", "", (CONFIG,), charts=()).of_charts == ()


@pytest.mark.parametrize(
    "failure", [TemporaryError("failed post-upgrade"), InvalidError("refused")], ids=["now", "ever"]
)
def test_events_of_an_upgrade_that_fails_begin_no_other_one(
    fleet: Fleet, east: FakeKube, failure: BellhopError
) -> None:
    """Helm writes objects in each upgrade, and again in the rollback: that would never end."""
    fleet.deploy(charts(more=WATCHED))
    fleet.charts.failures["web"] = failure

    def arrive() -> None:
        if len(fleet.charts.deployed) < 40:
            fleet.publisher.publish([TOUCHED])
            fleet.charts.meanwhile.append(arrive)

    fleet.charts.meanwhile.append(arrive)
    fleet.deploy(charts(of=chart(values="replicas: two"), more=WATCHED))
    fleet.wait(timedelta(minutes=10), 4)
    # After ten minutes a retry is overdue, so that the resync may request it as well.
    assert 2 < len(fleet.charts.deployed) < 12

    fleet.charts.failures.clear()
    fleet.wait(timedelta(minutes=30))
    assert data(east)["web-config"]["replicas"] == "two"
