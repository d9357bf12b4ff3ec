"""Charts that are waited for: no worker is held, and the wait outlives processes and messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import TemporaryError, UnreachableError
from bellhop.operations import pause as pausing
from bellhop.state.messages import Apply
from tests.fakes import rig
from tests.fakes.fleet import Fleet, OpenFleet
from tests.fakes.kube import FakeKube
from tests.fakes.releases import (
    chart,
    charts,
    data,
    die,
    held,
    outcome,
)
from tests.fakes.share import SHARE

DEPLOYMENT = GVK("apps", "v1", "Deployment")
WAITING = ("Provisioning", "waiting for Deployment apps/web (0 of 1 ready)")


def deployment(name: str = "web", **status: Any) -> dict[str, Any]:
    """Return a Deployment as its cluster has it; one without a status is not processed yet."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "apps"},
        "spec": {"replicas": 1},
        "status": status,
    }


def become_ready(kube: FakeKube, name: str = "web") -> None:
    """Let the pods of a Deployment run."""
    there = kube.get(DEPLOYMENT, "apps", name)
    assert there
    available = {"type": "Available", "status": "True"}
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    kube.put({**there, "status": {**counts, "conditions": [available]}})


def waited(more: str = "", *, name: str = "web", profile: str = "p", spec: str = "") -> str:
    """Return a profile with a chart that is waited for, with more options."""
    of = chart(f"options: {{wait: true{more}}}", name=name)
    return charts(profile, of=of, more=spec)


def two(spec: str = "") -> str:
    """Return a profile with a chart that is waited for, and one after it."""
    first = chart("options: {wait: true}").rstrip()
    second = chart(name="second").partition("helmCharts:")[2].lstrip()
    return charts(of=f"{first}\n    {second}", more=spec)


@pytest.fixture
def web(fleet: Fleet, east: FakeKube) -> FakeKube:
    fleet.charts.workloads["web"] = deployment()
    return east


def later(fleet: Fleet, pause: timedelta) -> None:
    """Let a time pass, and do all that is due by then."""
    fleet.wait(pause)


def test_a_chart_that_is_not_ready_yet_is_waited_for_without_helm(
    fleet: Fleet, web: FakeKube
) -> None:
    """Its status names what is missing, and it is deployed once that is there."""
    fleet.deploy(waited())
    assert outcome(fleet) == WAITING
    [asked] = fleet.charts.deployed
    assert asked.install
    assert not asked.install.wait
    assert not asked.options.wait

    fleet.publisher.publish([Apply("", "", "p", "fleet/east")])
    later(fleet, timedelta(minutes=1))
    assert outcome(fleet) == WAITING
    become_ready(web)
    later(fleet, timedelta(minutes=1))
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 1


def test_the_next_chart_comes_once_the_one_before_is_ready(fleet: Fleet, web: FakeKube) -> None:
    """As Helm's own wait has it."""
    fleet.deploy(two())
    assert set(data(web)) == {"web-config"}

    become_ready(web)
    later(fleet, timedelta(minutes=1))
    assert set(data(web)) == {"web-config", "second-config"}
    assert outcome(fleet) == ("Provisioned", "")


def test_a_chart_that_waits_delays_no_other_profile_and_no_removal(
    fleet: Fleet, web: FakeKube
) -> None:
    """Neither takes longer than without it: all is done while it waits."""
    fleet.deploy(waited(name="old", profile="old"))
    fleet.apply(*(waited(name=f"n{number}", profile=f"n{number}") for number in range(8)))
    fleet.charts.workloads |= {f"n{number}": deployment(f"n{number}") for number in range(8)}
    fleet.pump()

    fleet.apply(waited(name="good", profile="good"))
    fleet.declare.delete([("ClusterProfile", "", "old")])
    fleet.release()
    fleet.pump()
    assert outcome(fleet, "good") == ("Provisioned", "")
    assert outcome(fleet, "old") == ("", "")
    assert "old-config" not in data(web)
    assert {outcome(fleet, f"n{number}")[0] for number in range(8)} == {"Provisioning"}


def test_a_chart_that_never_becomes_ready_has_failed_after_its_timeout(
    fleet: Fleet, web: FakeKube
) -> None:
    """The timeout may be longer than a worker is waited for; the chart may be ready after it."""
    fleet.deploy(waited(", timeout: 10m"))
    for _ in range(9):
        later(fleet, timedelta(minutes=1))
        assert outcome(fleet) == WAITING

    later(fleet, timedelta(minutes=1))
    what = "Deployment apps/web (0 of 1 ready)"
    late = (
        "Failed",
        f"the release 'apps/web' was not ready within options.timeout, 600 s: {what}",
    )
    assert outcome(fleet) == late
    later(fleet, timedelta(minutes=1))
    assert outcome(fleet) == late

    become_ready(web)
    later(fleet, timedelta(minutes=15))
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 1


@pytest.mark.usefixtures("web")
def test_a_timeout_counts_for_the_most_failures_in_a_row(fleet: Fleet) -> None:
    """The readings before it do not."""
    fleet.deploy(waited(spec="maxConsecutiveFailures: 1"))
    for _ in range(4):
        later(fleet, timedelta(minutes=1))
        assert outcome(fleet) == WAITING
    later(fleet, timedelta(minutes=1))
    phase, message = outcome(fleet)
    assert phase == "FailedNonRetriable"
    assert "it has failed 1 times in a row" in message


def test_a_profile_that_changes_while_its_chart_waits_is_deployed_again_at_once(
    fleet: Fleet, web: FakeKube
) -> None:
    fleet.deploy(waited())
    fleet.apply(charts(of=chart(values="replicas: two")))
    fleet.wait(timedelta(seconds=2))
    assert data(web)["web-config"]["replicas"] == "two"
    assert outcome(fleet) == ("Provisioned", "")


@pytest.mark.usefixtures("web")
def test_a_profile_that_is_deleted_while_its_chart_waits_is_removed_at_once(fleet: Fleet) -> None:
    fleet.deploy(waited())
    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.wait(timedelta(seconds=2))
    assert fleet.charts.releases == {}
    assert held(fleet) == set()
    assert outcome(fleet) == ("", "")


def test_a_process_that_starts_after_one_died_goes_on_waiting(fleet: Fleet, web: FakeKube) -> None:
    """The wait is in the records, and the time that has passed counts."""
    fleet.deploy(waited())
    fleet.reread()
    later(fleet, timedelta(minutes=4))
    assert outcome(fleet) == WAITING
    later(fleet, timedelta(minutes=1))
    assert outcome(fleet)[0] == "Failed"
    become_ready(web)
    later(fleet, timedelta(minutes=15))
    assert outcome(fleet) == ("Provisioned", "")


@pytest.mark.rest
def test_death_at_any_step_of_a_wait_leaves_what_is_wanted(open_fleet: OpenFleet) -> None:
    """Of the deployment, and of a later try that finds the release ready."""
    for steps in range(1, 100, SHARE):
        fleet = open_fleet()
        fleet.repositories.put("web", "1.0.0")
        fleet.charts.workloads["web"] = deployment()
        east = fleet.register("east", env="production")
        fate = rig.make_mortal(fleet)
        die(fleet, fate, steps, waited(", timeout: 1h"))
        assert outcome(fleet) == WAITING

        become_ready(east)
        fleet.clock.advance(timedelta(minutes=10))
        rig.kill(fleet, fate, steps)
        later(fleet, timedelta(minutes=5))
        assert outcome(fleet) == ("Provisioned", "")


def test_a_clock_that_goes_back_makes_no_wait_longer_than_its_timeout(
    fleet: Fleet, web: FakeKube
) -> None:
    """It begins again by the clock that is right."""
    del web
    fleet.clock.advance(timedelta(days=1))
    fleet.deploy(waited())
    fleet.clock.jump(-timedelta(days=1))
    fleet.schedule.pull_in()
    for _ in range(4):
        later(fleet, timedelta(minutes=1))
        assert outcome(fleet) == WAITING
    later(fleet, timedelta(minutes=2))
    assert outcome(fleet)[0] == "Failed"


def test_a_cluster_that_is_paused_while_a_chart_waits_goes_on_once_it_is_resumed(
    fleet: Fleet, web: FakeKube
) -> None:
    fleet.deploy(waited())
    pausing.pause_cluster(fleet.installation(), "fleet/east", paused=True)
    later(fleet, timedelta(minutes=1))
    become_ready(web)
    pausing.pause_cluster(fleet.installation(), "fleet/east", paused=False)
    later(fleet, timedelta(minutes=1))
    assert outcome(fleet) == ("Provisioned", "")


@pytest.mark.parametrize("more", [", atomic: true", ", runTests: true"])
def test_helm_waits_itself_where_it_does_something_after_that(
    fleet: Fleet, web: FakeKube, more: str
) -> None:
    """It rolls back what does not become ready, or runs tests."""
    del web
    fleet.deploy(waited(more))
    assert [each.options.wait for each in fleet.charts.deployed] == [True]


@pytest.mark.parametrize(
    ("hook", "helm_waits"),
    [("pre-install", False), ("post-install,post-upgrade", True), ("test", False)],
)
def test_helm_waits_itself_for_a_chart_with_hooks_after_that(
    fleet: Fleet, web: FakeKube, hook: str, *, helm_waits: bool
) -> None:
    """They are to run once the release is ready."""
    del web
    job = {"kind": "Job", "metadata": {"name": "j", "annotations": {"helm.sh/hook": hook}}}
    fleet.charts.hooks = [{"apiVersion": "batch/v1", **job}]
    fleet.deploy(waited())
    assert [each.options.wait for each in fleet.charts.deployed] == [helm_waits]


@pytest.mark.parametrize(
    ("more", "helm_waits"), [("", False), (", waitForJobs: true", True)], ids=["wait", "jobs"]
)
def test_helm_waits_itself_for_jobs_that_are_deleted_once_they_ended(
    fleet: Fleet, web: FakeKube, more: str, *, helm_waits: bool
) -> None:
    """No later read would find them."""
    del web
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"ttlSecondsAfterFinished": 5}}
    fleet.charts.hooks = [{"apiVersion": "batch/v1", **job}]
    fleet.deploy(waited(more))
    assert [each.options.wait for each in fleet.charts.deployed] == [helm_waits]


def test_helm_waits_itself_where_an_upgrade_deletes_what_it_made(
    fleet: Fleet, web: FakeKube
) -> None:
    """An upgrade that fails by its wait is cleaned up, which an installation is not."""
    options = ", upgradeOptions: {cleanupOnFail: true}"
    fleet.deploy(waited(options))
    become_ready(web)
    later(fleet, timedelta(minutes=1))
    fleet.apply(charts(of=chart(f"options: {{wait: true{options}}}", values="replicas: two")))
    later(fleet, timedelta(seconds=2))
    asked = [each.options if each.there else each.install for each in fleet.charts.deployed]
    assert [each.wait for each in asked if each] == [False, True]


def test_hooks_are_those_of_an_upgrade_where_a_release_is_there(
    fleet: Fleet, web: FakeKube
) -> None:
    """Templates may make other hooks of it than of an installation with the same values."""
    del web
    fleet.deploy(waited())
    fleet.apply(waited(", timeout: 10m"))
    later(fleet, timedelta(seconds=2))
    assert [each.there for each in fleet.charts.rendered] == [False, True]


def test_what_fails_beside_a_chart_that_waits_is_counted(fleet: Fleet, web: FakeKube) -> None:
    """By continueOnError the next chart is deployed meanwhile, and its failure is the status."""
    del web
    fleet.charts.failures["second"] = TemporaryError("the repository is down")
    fleet.deploy(two("continueOnError: true"))
    phase, message = outcome(fleet)
    assert phase == "Failed"
    assert "the repository is down" in message
    assert "Deployment apps/web (0 of 1 ready)" in message


def test_a_cluster_that_fails_as_a_release_is_read_has_it_deployed_once(
    fleet: Fleet, web: FakeKube
) -> None:
    """The call of Helm is noted before: another one would run its hooks again."""
    dead = UnreachableError("no answer")
    fleet.charts.meanwhile.append(lambda: web.fail_with(dead, "get"))
    fleet.deploy(waited())
    web.fail_with(None, "get")
    become_ready(web)
    later(fleet, timedelta(minutes=5))
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 1
