"""Deployment status of a profile: the last one stored was begun after all others were stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.deploy.status_messages import feature_statuses
from bellhop.diagnosis import profile_status
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import DeniedError, TemporaryError
from bellhop.settings import Settings
from bellhop.state.delays import retry_timer
from bellhop.state.deployment import DeploymentStatus, Ended
from bellhop.state.messages import Apply, Resolve
from tests.fakes import rig
from tests.fakes.clock import START
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.hooks import after_next
from tests.fakes.kept import require_value, value_of
from tests.fakes.kube import CONFIG, FakeKube

APPLY = Apply("", "", "own", EAST)
DENIED = DeniedError("cluster 'fleet/east' refuses: no right to patch configmaps")
PROFILE = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: own}
spec:
  clusterSelector: {matchLabels: {env: production}}
  policyRefs: [{kind: ConfigMap, name: own, namespace: default}]
"""
GOOD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: default, annotations: {projectsveltos.io/template: ok}}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: own, namespace: default}
"""
BAD = GOOD + "    data: {v: '{{ fail \"not today\" }}'}\n"
FAILED = DeploymentStatus(EAST, "own", "", "", "Failed", START, reason="Denied", message="no")
NOTHING = GOOD.partition("main.yaml")[0] + "main.yaml: '# nothing'\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path, Settings(retry_first=timedelta(minutes=1)))


def another(fleet: Fleet) -> None:
    """Do what another worker does that got the same message, or a later one."""
    fleet.stages["deploy"].handle(Resolve("own"))
    fleet.stages["deploy"].handle(APPLY)


def noted_late(fleet: Fleet, kept: DeploymentStatus) -> None:
    """Note an outcome as a worker does that was slow, and has yet to look again."""
    fleet.records.outcomes.put(kept)


def before(target: Any, method: str, happens: Callable[[], None]) -> None:
    """Let something happen once, between what a worker did and what it is about to note."""
    real = getattr(target, method)

    def late(*args: Any, **kwargs: Any) -> Any:
        setattr(target, method, real)
        happens()
        return real(*args, **kwargs)

    setattr(target, method, late)


def test_an_older_failure_is_not_noted_over_a_newer_success(fleet: Fleet, east: FakeKube) -> None:
    """A slow worker that failed finds that another one succeeded, and tries again."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")

    def healed() -> None:
        east.fail_with(None)
        another(fleet)
        assert fleet.status_of().phase == "Provisioned"

    before(fleet.records.outcomes, "put", healed)
    fleet.pump()

    assert (fleet.status_of().phase, fleet.status_of().failures) == ("Provisioned", 0)
    fleet.wait(timedelta(minutes=2))
    assert fleet.status_of().phase == "Provisioned"


def test_an_older_success_is_not_noted_over_a_newer_failure(fleet: Fleet, east: FakeKube) -> None:
    """A slow worker that succeeded tries again, and finds the failure of the other one."""
    fleet.apply(PROFILE, GOOD)

    def broken() -> None:
        # A namespace that was restored has lost the object, and nobody may make it again.
        fleet.records.inventories.doubt(EAST, "own", None)
        east.fail_with(DENIED, "apply")
        another(fleet)
        assert fleet.status_of().phase == "Failed"

    before(fleet.records.outcomes, "put", broken)
    fleet.pump()

    assert fleet.status_of().phase == "Failed"
    assert fleet.records.timers.get(retry_timer(EAST, "own"))


def test_a_failure_of_older_inputs_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A newer worker that finds all as it was, and notes nothing, still has the last word."""
    fleet.deploy(PROFILE, GOOD)
    fleet.apply(BAD)
    fleet.stages["deploy"].handle(Resolve("own"))

    def back() -> None:
        fleet.deploy(GOOD)
        assert fleet.status_of().phase == "Provisioned"

    before(fleet.records.outcomes, "put", back)
    fleet.stages["deploy"].handle(APPLY)

    assert (fleet.status_of().phase, fleet.status_of().message) == ("Provisioned", "")
    del east


@pytest.mark.parametrize("contents", [GOOD, NOTHING], ids=["an object", "no object"])
def test_a_late_removal_keeps_the_status_of_a_recreated_profile(
    fleet: Fleet, east: FakeKube, contents: str
) -> None:
    """The profile came back between the read of its absence and the deletion of its status."""
    fleet.deploy(PROFILE, contents)
    kept = fleet.status_of()
    fleet.delete("ClusterProfile", "own")
    noted_late(fleet, kept)
    noted = []

    def anew() -> None:
        fleet.apply(PROFILE, contents)
        another(fleet)
        noted.append(fleet.records.outcomes.get(EAST, "own"))

    before(fleet.records.outcomes, "delete", anew)
    fleet.stages["deploy"].handle(APPLY)

    assert fleet.status_of().phase == "Provisioned"
    if contents == GOOD:
        assert [fleet.records.outcomes.get(EAST, "own")] == noted
    del east


def test_an_outcome_noted_while_its_cluster_is_left_does_not_stay(
    fleet: Fleet, east: FakeKube
) -> None:
    """A worker that found no status to delete looks again when there is one."""
    fleet.deploy(PROFILE, GOOD)
    kept = fleet.status_of()
    fleet.delete("ClusterProfile", "own")

    before(fleet.records.clusters, "get", lambda: noted_late(fleet, kept))
    fleet.stages["deploy"].handle(APPLY)

    assert fleet.records.outcomes.get(EAST, "own") is None
    del east


def test_what_has_succeeded_is_not_tried_again(fleet: Fleet, east: FakeKube) -> None:
    """The next try of a failure is cancelled by a worker that succeeds before."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    assert fleet.records.timers.get(retry_timer(EAST, "own"))

    east.fail_with(None)
    fleet.stages["deploy"].handle(APPLY)

    assert fleet.status_of().phase == "Provisioned"
    assert fleet.records.timers.get(retry_timer(EAST, "own")) is None


def test_a_try_that_another_sets_meanwhile_stays_set(fleet: Fleet, east: FakeKube) -> None:
    """A success cancels the retry of the failure before it, and no later one."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    east.fail_with(None)

    def slow() -> None:
        fleet.records.inventories.doubt(EAST, "own", None)
        east.fail_with(DENIED, "apply")
        another(fleet)

    after_next(fleet.records.outcomes, "put", slow)
    fleet.stages["deploy"].handle(APPLY)

    assert fleet.status_of().phase == "Failed"
    timer = require_value(fleet.records.timers.get(retry_timer(EAST, "own")))
    assert timer.at == fleet.status_of().retry_at


def test_a_profile_is_closed_when_the_last_cluster_is_left(fleet: Fleet, east: FakeKube) -> None:
    """Till then it is known what leaving means: here, that objects stay."""
    west = fleet.register("west", env="production")
    stays = PROFILE.replace("spec:", "spec:\n  stopMatchingBehavior: LeavePolicies")
    fleet.deploy(stays, GOOD)

    fleet.delete("ClusterProfile", "own")

    assert [each.objects(CONFIG) != [] for each in (east, west)] == [True, True]
    assert fleet.records.profiles.head("", "", "own") is None


def test_a_cluster_that_is_forgotten_is_left(fleet: Fleet, east: FakeKube) -> None:
    """No profile waits for a cluster that is no more; nor does one end that wants it still."""
    fleet.deploy(PROFILE, GOOD)
    assert fleet.store.delete("cluster", EAST)
    before = fleet.records.profiles.head("", "", "own")
    fleet.stages["deploy"].handle(APPLY)
    assert fleet.records.profiles.head("", "", "own") == before
    assert fleet.records.outcomes.get(EAST, "own") is None

    fleet.delete("ClusterProfile", "own")

    assert fleet.records.profiles.head("", "", "own") is None
    del east


def test_a_status_has_the_result_of_each_feature(fleet: Fleet, east: FakeKube) -> None:
    """Phase, reason and retry time where it failed, and Provisioned once it is done."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    failed = fleet.status_of()
    assert failed.features == (
        Ended("Resources", "Failed", "Denied", failed.message, failed.retry_at),
    )
    assert failed.retry_at

    east.fail_with(None)
    fleet.wait(timedelta(minutes=5))

    assert fleet.status_of().features == (Ended("Resources", "Provisioned"),)


def test_only_the_failed_feature_has_the_failure() -> None:
    """The features before it are done, and no later one was begun."""
    ended = feature_statuses(("Resources", "Helm", "Kustomize"), "Helm", FAILED)

    assert [(each.feature, each.phase, each.reason) for each in ended] == [
        ("Resources", "Provisioned", ""),
        ("Helm", "Failed", "Denied"),
        ("Kustomize", "Provisioning", ""),
    ]


def test_a_failure_of_no_feature_is_that_of_all() -> None:
    """For example a cluster that does not answer."""
    ended = feature_statuses(("Resources", "Helm"), "", FAILED)

    assert [(each.feature, each.message) for each in ended] == [("Resources", "no"), ("Helm", "no")]


def test_what_an_earlier_version_noted_is_of_the_one_feature_that_it_had() -> None:
    """Its record names none, and is read all the same."""
    assert profile_status.list_features(FAILED) == (Ended("Resources", "Failed", "Denied", "no"),)


def test_a_failure_begins_with_its_first_attempt(fleet: Fleet, east: FakeKube) -> None:
    """Further attempts do not move its beginning, and neither does another reason; success does."""
    fleet.apply(PROFILE + "---" + GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    begun = fleet.clock.now()
    for error in (DENIED, TemporaryError("the API server is busy")):
        east.fail_with(error, "apply")
        fleet.clock.advance(timedelta(hours=2))
        rig.tick(fleet)
        fleet.pump()
    failed = value_of(fleet.records.outcomes.get(EAST, "own"))
    assert failed
    assert (failed.phase, failed.failures > 1) == ("Failed", True)
    assert (failed.begun_at, failed.at > begun) == (begun, True)

    east.fail_with(None)
    fleet.clock.advance(timedelta(hours=2))
    rig.tick(fleet)
    fleet.pump()
    done = value_of(fleet.records.outcomes.get(EAST, "own"))
    assert done
    assert (done.phase, done.begun_at) == ("Provisioned", fleet.clock.now())


@pytest.mark.usefixtures("east")
def test_inputs_fail_since_they_failed_first(fleet: Fleet) -> None:
    """A profile whose manifest fails otherwise than before fails since then all the same."""
    wrong = GOOD.partition("main.yaml")[0].replace("template", "instantiate")
    fleet.deploy(PROFILE + "---" + wrong + "one.yaml: '{{ fail \"today\" }}'\n")
    begun = fleet.clock.now()
    fleet.clock.advance(timedelta(hours=1))
    fleet.deploy(wrong + "two.yaml: 'a: [one'\n")
    [row] = [each for each in list_failures(fleet.installation()) if each.type == "profile"]

    assert (row.since, "two.yaml" in row.message) == (begun, True)
