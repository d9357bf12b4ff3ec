"""Limits of failures of a profile in a cluster: the first error, and too many in a row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from bellhop.errors import BellhopError, InvalidError, TemporaryError, UnreachableError
from bellhop.operations.redeployment import redeploy
from bellhop.state.messages import Apply
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile

APPLY = Apply("", "", "own", EAST)


def deploy_own(fleet: Fleet, more: str = "", *objects: str) -> None:
    fleet.deploy(profile(more=more), holder("own", *map(config, objects or ("a", "b", "c"))))


@pytest.mark.parametrize("error", [InvalidError("no"), TemporaryError("not now")])
@pytest.mark.parametrize(("more", "deployed"), [("", ["a"]), ("continueOnError: true", ["a", "c"])])
def test_the_first_error_stops_the_rest(
    fleet: Fleet, east: FakeKube, error: BellhopError, more: str, deployed: list[str]
) -> None:
    """Nothing is begun behind an object that fails, unless the profile goes on."""
    east.refuse("b", error)
    deploy_own(fleet, more)

    assert east.names() == deployed
    assert fleet.status_of().message == str(error)


def test_a_status_lists_as_many_failures_as_fit(fleet: Fleet, east: FakeKube) -> None:
    """The first ones in full, and the number of the others."""
    names_ = [f"a{number:02}" for number in range(40)]
    for name in names_:
        east.refuse(name, InvalidError(f"cannot apply '{name}': {'no ' * 30}"))
    deploy_own(fleet, "continueOnError: true", *names_)

    message = fleet.status_of().message
    assert message.startswith("cannot apply 'a00': no")
    told = message.count("cannot apply")
    assert 10 < told < 40
    assert message.endswith(f"; and {40 - told} more")
    assert len(message) < 2048


def test_a_cluster_that_can_be_deployed_to_waits_for_no_other(fleet: Fleet, east: FakeKube) -> None:
    """Of a conflict and an error that may pass, the latter says when it is tried again."""
    other = profile(name="other", more="tier: 50")
    fleet.deploy(other, holder("other", config("a")))
    end = east.refuse("b", TemporaryError("not now"))
    deploy_own(fleet, "continueOnError: true\n  continueOnConflict: true")
    found = fleet.status_of()
    assert (found.phase, found.reason) == ("Failed", "Temporary")
    assert found.message.startswith("not now; cannot apply ConfigMap 'default/a'")
    assert found.retry_at
    assert found.retry_at - fleet.clock.now() < fleet.settings.retry_ceiling / 4

    end()
    fleet.wait(timedelta(minutes=1))
    assert east.names() == ["a", "b", "c"]
    assert fleet.status_of().reason == "Conflict"


@pytest.mark.parametrize("more", ["", "continueOnError: true"])
def test_a_failed_object_is_applied_once_it_can_be(fleet: Fleet, east: FakeKube, more: str) -> None:
    """The next try applies all that is missing, and nothing is removed meanwhile."""
    end = east.refuse("b", InvalidError("no"))
    deploy_own(fleet, more)
    end()
    fleet.wait()

    assert east.names() == ["a", "b", "c"]
    assert fleet.status_of().phase == "Provisioned"


def deploy_failing(fleet: Fleet, east: FakeKube, most: int = 3) -> Callable[[], None]:
    """Deploy a profile that is dead-lettered after so many failures, and let it fail."""
    end = east.refuse("b", InvalidError("no"))
    deploy_own(fleet, f"maxConsecutiveFailures: {most}")
    return end


def test_a_profile_fails_permanently_after_the_most_failures(fleet: Fleet, east: FakeKube) -> None:
    """Before that it is tried again; then neither time nor a message has it tried."""
    end = deploy_failing(fleet, east)
    found = [fleet.status_of().phase]
    for _ in range(2):
        fleet.wait()
        found.append(fleet.status_of().phase)
    end()
    fleet.wait(times=3)
    fleet.publisher.publish([APPLY, APPLY])
    fleet.wait()

    assert found == ["Failed", "Failed", "FailedNonRetriable"]
    assert east.names() == ["a"]
    last = fleet.status_of()
    assert (last.counted, last.retry_at) == (3, None)
    assert "it has failed 3 times in a row" in last.message
    assert "`bellhop redeploy own`" in last.message


def test_a_message_that_comes_again_does_not_count(fleet: Fleet, east: FakeKube) -> None:
    """Only a try at its time counts, however many messages ask for one."""
    deploy_failing(fleet, east)
    for _ in range(5):
        # A queue that keeps no order hands it out while the one before it rests.
        with suppress(TemporaryError):
            fleet.stages["deploy"].handle(APPLY)

    assert fleet.status_of().counted == 1
    assert fleet.status_of().phase == "Failed"


@pytest.mark.parametrize("verbs", [(), ("apply",)], ids=["at all", "in time"])
def test_a_cluster_that_does_not_answer_does_not_count(
    fleet: Fleet, east: FakeKube, verbs: tuple[str, ...]
) -> None:
    """The count of failures stays as it was for as long as the cluster does not answer."""
    deploy_failing(fleet, east)()
    east.fail_with(UnreachableError("cannot reach it"), *verbs)
    fleet.wait(times=5)
    assert fleet.status_of().counted == 1

    east.fail_with(None)
    east.refuse("b", InvalidError("no"))
    fleet.wait(times=3)
    assert fleet.status_of().phase == "FailedNonRetriable"


@pytest.mark.parametrize("how", ["profile", "contents", "labels", "redeploy"])
def test_a_change_has_it_tried_again(fleet: Fleet, east: FakeKube, how: str) -> None:
    """A change of its inputs, or a redeployment, starts the count again."""
    end = deploy_failing(fleet, east, 2)
    fleet.wait(times=3)
    assert fleet.status_of().phase == "FailedNonRetriable"
    match how:
        case "profile":
            deploy_own(fleet, "maxConsecutiveFailures: 2\n  tier: 50")
        case "contents":
            deploy_own(fleet, "maxConsecutiveFailures: 2", "a", "b", "d")
        case "labels":
            fleet.declare.label(EAST, {"team": "blue"})
        case _:
            redeploy(fleet.installation(), "own")
    fleet.pump()
    assert (fleet.status_of().phase, fleet.status_of().counted) == ("Failed", 1)

    end()
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"


@pytest.mark.parametrize("how", ["profile", "contents", "labels"])
def test_after_a_change_the_first_pause_counts_again(
    fleet: Fleet, east: FakeKube, how: str
) -> None:
    """A correction that fails for a passing reason is not left for what its predecessor earned."""
    east.refuse("b", InvalidError("no"))
    deploy_own(fleet)
    first = fleet.status_of().retry_at
    assert first
    shortest = first - fleet.clock.now()
    fleet.wait(times=6)
    last = fleet.status_of()
    assert last.retry_at
    assert last.retry_at - fleet.clock.now() > 4 * shortest

    match how:
        case "profile":
            deploy_own(fleet, "tier: 50")
        case "contents":
            deploy_own(fleet, "", "a", "b", "d")
        case _:
            fleet.declare.label(EAST, {"env": "production", "team": "blue"})
    fleet.pump()
    now = fleet.status_of()
    assert (now.phase, now.failures) == ("Failed", 1)
    assert now.retry_at
    assert now.retry_at - fleet.clock.now() < 2 * shortest


def test_a_permanently_failed_profile_can_be_withdrawn(fleet: Fleet, east: FakeKube) -> None:
    """Its add-ons are removed as usual, and nothing is left of it."""
    deploy_failing(fleet, east, 1)
    assert fleet.status_of().phase == "FailedNonRetriable"
    fleet.delete("ClusterProfile", "own")

    assert east.names() == []
    assert fleet.records.outcomes.get(EAST, "own") is None


def test_a_success_ends_the_count(fleet: Fleet, east: FakeKube) -> None:
    """Only consecutive failures count."""
    end = deploy_failing(fleet, east, 2)
    end()
    fleet.wait()
    assert (fleet.status_of().phase, fleet.status_of().counted) == ("Provisioned", 0)
