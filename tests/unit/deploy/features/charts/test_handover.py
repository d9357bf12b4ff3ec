"""Releases that one profile releases and another one takes over: upgraded where they are."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import InvalidError
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import source, trigger
from tests.fakes.releases import chart, charts, data, held, outcome

RELEASE = {"helm.sh/Release/apps/web", "/ConfigMap/apps/web-config"}
RENDERED = '"{{ printf `we%s` `b` }}"'


def of_test(name: str, of: str = "") -> str:
    return charts(name, of=of or chart(values="replicas: two")).replace("production", "test")


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("release", ["web", RENDERED])
def test_a_cluster_that_moves_between_profiles_keeps_their_common_release(
    fleet: Fleet, east: FakeKube, names: tuple[str, str], release: str
) -> None:
    """Neither the order of the profiles matters, nor a template in the name of the release."""
    former, later = names
    fleet.apply(charts(former))
    fleet.deploy(of_test(later, chart(name=release, values="replicas: two")))

    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert fleet.charts.removals == []
    assert data(east)["web-config"]["replicas"] == "two"
    assert held(fleet, former) == set()
    assert held(fleet, later) == RELEASE
    assert outcome(fleet, former) == ("", "")
    assert outcome(fleet, later) == ("Provisioned", "")


def test_a_cluster_that_moves_to_a_trigger_keeps_their_common_release(
    fleet: Fleet, east: FakeKube
) -> None:
    """The trigger, which has generated its profile because of another cluster, comes later."""
    west = fleet.register("west", env="production", role="source")
    west.put(service("web"))
    more = "destinationClusterSelector: {matchLabels: {env: test}}\n  "
    generated = trigger(more=more + chart(values="replicas: two")).replace("policyRefs", "# ")
    fleet.apply(charts("a"), source(), generated)
    fleet.resync("fleet/west")
    assert len(fleet.charts.deployed) == 2

    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    deploys = fleet.queues["deploy"].receive(10, wait=timedelta(0))
    later = [each for each in deploys if each.message.body["do"] == "instantiate"]
    fleet.work("deploy", [each for each in deploys if each not in later])
    for inbox in ("apply", "charts"):
        while deliveries := fleet.queues[inbox].receive(1, wait=timedelta(0)):
            fleet.work(inbox, deliveries)
    assert "is kept for trigger 'made'" in outcome(fleet, "a")[1]
    fleet.work("deploy", later)
    fleet.pump()
    assert fleet.charts.removals == []
    assert data(east)["web-config"]["replicas"] == "two"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_chart_that_moves_into_another_profile_of_the_cluster_is_upgraded(
    fleet: Fleet, east: FakeKube, names: tuple[str, str]
) -> None:
    """Both profiles stay; they are applied at once."""
    former, later = names
    other = chart(name="second")
    fleet.deploy(charts(former) + "---" + charts(later, of=other))

    fleet.apply(charts(former, of=other.replace("second", "third")) + "---" + charts(later))
    fleet.release()
    fleet.pump()
    assert data(east).keys() == {"web-config", "third-config"}
    assert len(fleet.charts.removals) == 1
    assert held(fleet, later) == RELEASE
    assert outcome(fleet, former) == outcome(fleet, later) == ("Provisioned", "")


def test_a_release_is_removed_though_the_next_profile_cannot_be_deployed(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is kept for a minute: the next profile may lack something for good."""
    values = "valuesFrom: [{kind: ConfigMap, namespace: default, name: none}]"
    fleet.apply(charts("a"))
    fleet.deploy(of_test("b", chart(values)))
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert set(data(east)) == {"web-config"}
    assert "is kept for ClusterProfile 'b'" in outcome(fleet, "a")[1]

    fleet.wait(timedelta(minutes=2))
    assert data(east) == {}
    assert outcome(fleet, "a") == ("", "")


def two_releases(fleet: Fleet) -> None:
    """Deploy releases `web` and `second`, and let a profile that cannot be deployed want `web`."""
    second = chart(name="second").partition("helmCharts:")[2].lstrip()
    fleet.apply(charts("a", of=f"{chart().rstrip()}\n    {second}"))
    values = "valuesFrom: [{kind: ConfigMap, namespace: default, name: none}]"
    fleet.deploy(of_test("b", chart(values)))


def move(fleet: Fleet, env: str) -> None:
    fleet.declare.label("fleet/east", {"env": env})
    fleet.release()
    fleet.pump()


def test_a_release_is_kept_once_whatever_else_fails(fleet: Fleet, east: FakeKube) -> None:
    """A release beside it that cannot be removed does not begin the minute again."""
    two_releases(fleet)
    fleet.charts.irremovable["second"] = InvalidError("its hook failed")
    move(fleet, "test")
    assert set(data(east)) == {"web-config", "second-config"}

    fleet.wait(timedelta(minutes=20), 2)
    assert set(data(east)) == {"second-config"}
    assert "its hook failed" in outcome(fleet, "a")[1]


def test_a_release_that_is_wanted_again_is_kept_the_next_time(fleet: Fleet, east: FakeKube) -> None:
    """Helm is not called for a cluster that comes back within the minute."""
    two_releases(fleet)
    for _ in range(2):
        move(fleet, "test")
        assert "is kept for ClusterProfile 'b'" in outcome(fleet, "a")[1]
        move(fleet, "production")
        assert outcome(fleet, "a") == ("Provisioned", "")
        fleet.wait(timedelta(minutes=20))
    assert "web-config" in data(east)


def test_a_clock_that_goes_back_keeps_a_release_for_no_longer_than_a_minute(
    fleet: Fleet, east: FakeKube
) -> None:
    """The minute begins again by the clock that is right."""
    values = "valuesFrom: [{kind: ConfigMap, namespace: default, name: none}]"
    fleet.apply(charts("a"))
    fleet.deploy(of_test("b", chart(values)))
    fleet.clock.advance(timedelta(days=1))
    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.release()
    fleet.pump()
    assert set(data(east)) == {"web-config"}

    fleet.clock.jump(-timedelta(days=1))
    for _ in range(2):
        fleet.schedule.pull_in()
        fleet.wait(timedelta(minutes=2))
    assert data(east) == {}


def test_a_tier_that_rises_gives_a_release_to_the_profile_that_waits_for_it(
    fleet: Fleet, east: FakeKube
) -> None:
    """As an object: the release is upgraded once, by the profile that has it now."""
    fleet.deploy(charts("a", more="tier: 50"))
    fleet.deploy(charts("b", of=chart(values="replicas: two"), more="tier: 90"))
    assert "profile 'a' of tier 50 has it" in outcome(fleet, "b")[1]

    fleet.deploy(charts("a", more="tier: 100"))
    assert outcome(fleet, "b") == ("Provisioned", "")
    assert "profile 'b' of tier 90 has it" in outcome(fleet, "a")[1]
    assert (held(fleet, "a"), held(fleet, "b")) == (set(), RELEASE)
    assert data(east)["web-config"]["replicas"] == "two"
    assert fleet.charts.removals == []
    assert len(fleet.charts.deployed) == 2


def test_a_tier_that_falls_defends_a_release_that_is_held(fleet: Fleet, east: FakeKube) -> None:
    """Helm is not run for it."""
    fleet.deploy(charts("a"))
    fleet.deploy(charts("a", more="tier: 40"))
    fleet.deploy(charts("b", of=chart(values="replicas: two"), more="tier: 50"))
    assert "profile 'a' of tier 40 has it" in outcome(fleet, "b")[1]
    assert data(east)["web-config"]["replicas"] == "one"
    assert len(fleet.charts.deployed) == 1
