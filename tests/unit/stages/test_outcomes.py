"""How work on a cluster ended: what is noted last was begun after all else was noted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.deploy.status import by_feature
from bellhop.diagnosis import overview
from bellhop.diagnosis.failures import failures as list_failures
from bellhop.errors import DeniedError, TemporaryError
from bellhop.settings import Settings
from bellhop.state.delays import retry_timer
from bellhop.state.messages import Apply, Resolve
from bellhop.state.record import DeploymentStatus, Ended
from tests.fakes import rig
from tests.fakes.clock import START
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
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


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def outcome(fleet: Fleet) -> DeploymentStatus:
    found = value_of(fleet.records.outcomes.get(EAST, "own"))
    assert found
    return found


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
    """Who failed, and was slow to say so, sees that another succeeded; so did it, then."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")

    def healed() -> None:
        east.fail_with(None)
        another(fleet)
        assert outcome(fleet).phase == "Provisioned"

    before(fleet.records.outcomes, "put", healed)
    fleet.pump()

    assert (outcome(fleet).phase, outcome(fleet).failures) == ("Provisioned", 0)
    fleet.clock.advance(timedelta(minutes=2))
    fleet.pump()
    assert outcome(fleet).phase == "Provisioned"


def test_an_older_success_is_not_noted_over_a_newer_failure(fleet: Fleet, east: FakeKube) -> None:
    """Who succeeded, and was slow to say so, looks again, and finds what another found."""
    fleet.apply(PROFILE, GOOD)

    def broken() -> None:
        # A namespace that was restored has lost the object, and nobody may make it again.
        fleet.records.inventories.doubt(EAST, "own", None)
        east.fail_with(DENIED, "apply")
        another(fleet)
        assert outcome(fleet).phase == "Failed"

    before(fleet.records.outcomes, "put", broken)
    fleet.pump()

    assert outcome(fleet).phase == "Failed"
    assert fleet.records.timers.get(retry_timer(EAST, "own"))


def test_a_failure_of_older_inputs_does_not_stay(fleet: Fleet, east: FakeKube) -> None:
    """A newer worker that finds all as it was, and notes nothing, still has the last word."""
    fleet.apply(PROFILE, GOOD)
    fleet.pump()
    fleet.apply(BAD)
    fleet.stages["deploy"].handle(Resolve("own"))

    def back() -> None:
        fleet.apply(GOOD)
        fleet.pump()
        assert outcome(fleet).phase == "Provisioned"

    before(fleet.records.outcomes, "put", back)
    fleet.stages["deploy"].handle(APPLY)

    assert (outcome(fleet).phase, outcome(fleet).message) == ("Provisioned", "")
    del east


@pytest.mark.parametrize("contents", [GOOD, NOTHING], ids=["an object", "no object"])
def test_who_left_a_cluster_late_keeps_the_outcome_of_a_profile_made_anew(
    fleet: Fleet, east: FakeKube, contents: str
) -> None:
    """Between the look at a profile that is no more and the end of its outcome it came back."""
    fleet.apply(PROFILE, contents)
    fleet.pump()
    kept = outcome(fleet)
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()
    noted_late(fleet, kept)
    noted = []

    def anew() -> None:
        fleet.apply(PROFILE, contents)
        another(fleet)
        noted.append(fleet.records.outcomes.get(EAST, "own"))

    before(fleet.records.outcomes, "delete", anew)
    fleet.stages["deploy"].handle(APPLY)

    assert outcome(fleet).phase == "Provisioned"
    if contents == GOOD:
        assert [fleet.records.outcomes.get(EAST, "own")] == noted
    del east


def test_an_outcome_noted_while_its_cluster_is_left_does_not_stay(
    fleet: Fleet, east: FakeKube
) -> None:
    """Who found no outcome to end looks again when there is one."""
    fleet.apply(PROFILE, GOOD)
    fleet.pump()
    kept = outcome(fleet)
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    before(fleet.records.clusters, "get", lambda: noted_late(fleet, kept))
    fleet.stages["deploy"].handle(APPLY)

    assert fleet.records.outcomes.get(EAST, "own") is None
    del east


def test_what_has_succeeded_is_not_tried_again(fleet: Fleet, east: FakeKube) -> None:
    """The next try of a failure is cancelled by whoever succeeds before."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    assert fleet.records.timers.get(retry_timer(EAST, "own"))

    east.fail_with(None)
    fleet.stages["deploy"].handle(APPLY)

    assert outcome(fleet).phase == "Provisioned"
    assert fleet.records.timers.get(retry_timer(EAST, "own")) is None


def test_a_try_that_another_sets_meanwhile_stays_set(fleet: Fleet, east: FakeKube) -> None:
    """Who succeeded cancels the try of the failure that it saw, and no later one."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    east.fail_with(None)
    real = fleet.records.outcomes.put

    def slow(*args: Any, **kwargs: Any) -> str:
        fleet.records.outcomes.put = real  # type: ignore[method-assign]
        token = real(*args, **kwargs)
        fleet.records.inventories.doubt(EAST, "own", None)
        east.fail_with(DENIED, "apply")
        another(fleet)
        return token

    fleet.records.outcomes.put = slow  # type: ignore[method-assign]
    fleet.stages["deploy"].handle(APPLY)

    assert outcome(fleet).phase == "Failed"
    timer = fleet.records.timers.get(retry_timer(EAST, "own"))
    assert timer
    assert timer.value.at == outcome(fleet).retry_at


def test_a_profile_is_closed_when_the_last_cluster_is_left(fleet: Fleet, east: FakeKube) -> None:
    """Till then it is known what leaving means: here, that objects stay."""
    west = fleet.register("west", env="production")
    stays = PROFILE.replace("spec:", "spec:\n  stopMatchingBehavior: LeavePolicies")
    fleet.apply(stays, GOOD)
    fleet.pump()

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert [each.objects(CONFIG) != [] for each in (east, west)] == [True, True]
    assert fleet.records.profiles.head("", "", "own") is None


def test_a_cluster_that_is_forgotten_is_left(fleet: Fleet, east: FakeKube) -> None:
    """No profile waits for a cluster that is no more; nor does one end that wants it still."""
    fleet.apply(PROFILE, GOOD)
    fleet.pump()
    assert fleet.store.delete("cluster", EAST)
    before = fleet.records.profiles.head("", "", "own")
    fleet.stages["deploy"].handle(APPLY)
    assert fleet.records.profiles.head("", "", "own") == before
    assert fleet.records.outcomes.get(EAST, "own") is None

    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert fleet.records.profiles.head("", "", "own") is None
    del east


def test_tells_how_each_feature_ended(fleet: Fleet, east: FakeKube) -> None:
    """With phase, reason and next try where it failed, and that it is done once it is."""
    fleet.apply(PROFILE, GOOD)
    east.fail_with(DENIED, "apply")
    fleet.pump()
    failed = outcome(fleet)
    assert failed.features == (
        Ended("Resources", "Failed", "Denied", failed.message, failed.retry_at),
    )
    assert failed.retry_at

    east.fail_with(None)
    fleet.clock.advance(timedelta(minutes=5))
    fleet.pump()

    assert outcome(fleet).features == (Ended("Resources", "Provisioned"),)


def test_of_several_features_the_one_that_failed_is_told() -> None:
    """Those before it are done, and no later one was begun."""
    ended = by_feature(("Resources", "Helm", "Kustomize"), "Helm", FAILED)

    assert [(each.feature, each.phase, each.reason) for each in ended] == [
        ("Resources", "Provisioned", ""),
        ("Helm", "Failed", "Denied"),
        ("Kustomize", "Provisioning", ""),
    ]


def test_what_concerns_no_feature_alone_is_told_of_all() -> None:
    """As that the cluster does not answer."""
    ended = by_feature(("Resources", "Helm"), "", FAILED)

    assert [(each.feature, each.message) for each in ended] == [("Resources", "no"), ("Helm", "no")]


def test_what_an_earlier_version_noted_is_of_the_one_feature_that_it_had() -> None:
    """Its record names none, and is read all the same."""
    assert overview.by_feature(FAILED) == (Ended("Resources", "Failed", "Denied", "no"),)


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
    fleet.apply(PROFILE + "---" + wrong + "one.yaml: '{{ fail \"today\" }}'\n")
    fleet.pump()
    begun = fleet.clock.now()
    fleet.clock.advance(timedelta(hours=1))
    fleet.apply(wrong + "two.yaml: 'a: [one'\n")
    fleet.pump()
    [row] = [each for each in list_failures(fleet.installation()) if each.what == "profile"]

    assert (row.at, "two.yaml" in row.sentence) == (begun, True)
