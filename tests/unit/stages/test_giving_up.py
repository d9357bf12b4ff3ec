"""What stops a profile in a cluster: the first error, and too many failures in a row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import BellhopError, InvalidError, TemporaryError, UnreachableError
from bellhop.operations.redeployment import redeploy
from bellhop.state.messages import Apply
from bellhop.state.record import DeploymentStatus
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
HOUR = timedelta(hours=1)
APPLY = Apply("", "", "own", EAST)


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def names(kube: FakeKube) -> list[str]:
    return sorted(each["metadata"]["name"] for each in kube.objects(CONFIG))


def refuse(kube: FakeKube, name: str, error: BellhopError) -> Callable[[], None]:
    """Have a cluster refuse an object; return what ends that."""
    apply = kube.apply

    def refusing(manifest: dict[str, Any], **how: Any) -> Any:
        if manifest["metadata"]["name"] == name:
            raise error
        return apply(manifest, **how)

    kube.apply = refusing  # type: ignore[method-assign]

    def end() -> None:
        kube.apply = apply  # type: ignore[method-assign]

    return end


def brings(fleet: Fleet, more: str = "", *objects: str) -> None:
    fleet.apply(profile(more=more), holder("own", *map(config, objects or ("a", "b", "c"))))
    fleet.pump()


def outcome(fleet: Fleet) -> DeploymentStatus:
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    return found.value


def wait(fleet: Fleet, times: int = 1) -> None:
    for _ in range(times):
        fleet.clock.advance(HOUR)
        fleet.pump()


@pytest.mark.parametrize("error", [InvalidError("no"), TemporaryError("not now")])
@pytest.mark.parametrize(("more", "brought"), [("", ["a"]), ("continueOnError: true", ["a", "c"])])
def test_the_first_error_stops_the_rest(
    fleet: Fleet, east: FakeKube, error: BellhopError, more: str, brought: list[str]
) -> None:
    """Nothing is begun behind an object that fails, unless the profile goes on."""
    refuse(east, "b", error)
    brings(fleet, more)

    assert names(east) == brought
    assert outcome(fleet).message == str(error)


def test_all_that_failed_is_told_as_far_as_there_is_room(fleet: Fleet, east: FakeKube) -> None:
    """The first ones in full, of the rest how many; a record of it has an end."""
    names_ = [f"a{number:02}" for number in range(40)]
    for name in names_:
        refuse(east, name, InvalidError(f"cannot apply '{name}': {'no ' * 30}"))
    brings(fleet, "continueOnError: true", *names_)

    message = outcome(fleet).message
    assert message.startswith("cannot apply 'a00': no")
    told = message.count("cannot apply")
    assert 10 < told < 40
    assert message.endswith(f"; and {40 - told} more")
    assert len(message) < 2048


def test_who_may_be_brought_soon_is_not_kept_by_who_may_not(fleet: Fleet, east: FakeKube) -> None:
    """Of a conflict and an error that may pass, the latter says when it is tried again."""
    other = profile(name="other", more="tier: 50")
    fleet.apply(other, holder("other", config("a")))
    fleet.pump()
    end = refuse(east, "b", TemporaryError("not now"))
    brings(fleet, "continueOnError: true\n  continueOnConflict: true")
    found = outcome(fleet)
    assert (found.phase, found.reason) == ("Failed", "Temporary")
    assert found.message.startswith("not now; cannot apply ConfigMap 'default/a'")
    assert found.retry_at
    assert found.retry_at - fleet.clock.now() < fleet.settings.retry_ceiling / 4

    end()
    fleet.clock.advance(timedelta(minutes=1))
    fleet.pump()
    assert names(east) == ["a", "b", "c"]
    assert outcome(fleet).reason == "Conflict"


@pytest.mark.parametrize("more", ["", "continueOnError: true"])
def test_what_failed_is_brought_once_it_can_be(fleet: Fleet, east: FakeKube, more: str) -> None:
    """The next try brings all that is missing, and nothing is taken away meanwhile."""
    end = refuse(east, "b", InvalidError("no"))
    brings(fleet, more)
    end()
    wait(fleet)

    assert names(east) == ["a", "b", "c"]
    assert outcome(fleet).phase == "Provisioned"


def failing(fleet: Fleet, east: FakeKube, most: int = 3) -> Callable[[], None]:
    """Bring a profile that is dead-lettered after so many failures, and let it fail."""
    end = refuse(east, "b", InvalidError("no"))
    brings(fleet, f"maxConsecutiveFailures: {most}")
    return end


def test_it_is_given_up_after_so_many_failures(fleet: Fleet, east: FakeKube) -> None:
    """Before that it is tried again; then no time and no message has it tried."""
    end = failing(fleet, east)
    found = [outcome(fleet).phase]
    for _ in range(2):
        wait(fleet)
        found.append(outcome(fleet).phase)
    end()
    wait(fleet, 3)
    fleet.publisher.publish([APPLY, APPLY])
    wait(fleet)

    assert found == ["Failed", "Failed", "FailedNonRetriable"]
    assert names(east) == ["a"]
    last = outcome(fleet)
    assert (last.counted, last.retry_at) == (3, None)
    assert "it has failed 3 times in a row" in last.message
    assert "`bellhop redeploy own`" in last.message


def test_a_message_that_comes_again_does_not_count(fleet: Fleet, east: FakeKube) -> None:
    """Only a try at its time counts, however many messages ask for one."""
    failing(fleet, east)
    for _ in range(5):
        # A queue that keeps no order hands it out while the one before it rests.
        with suppress(TemporaryError):
            fleet.stages["deploy"].handle(APPLY)

    assert outcome(fleet).counted == 1
    assert outcome(fleet).phase == "Failed"


@pytest.mark.parametrize("verbs", [(), ("apply",)], ids=["at all", "in time"])
def test_a_cluster_that_does_not_answer_does_not_count(
    fleet: Fleet, east: FakeKube, verbs: tuple[str, ...]
) -> None:
    """However long it is away, what was counted before stays, and no more."""
    failing(fleet, east)()
    east.fail_with(UnreachableError("cannot reach it"), *verbs)
    wait(fleet, 5)
    assert outcome(fleet).counted == 1

    east.fail_with(None)
    refuse(east, "b", InvalidError("no"))
    wait(fleet, 3)
    assert outcome(fleet).phase == "FailedNonRetriable"


@pytest.mark.parametrize("how", ["profile", "contents", "labels", "redeploy"])
def test_a_change_has_it_tried_again(fleet: Fleet, east: FakeKube, how: str) -> None:
    """A change of what it is made of, or who asks for it, has it tried, and counted anew."""
    end = failing(fleet, east, 2)
    wait(fleet, 3)
    assert outcome(fleet).phase == "FailedNonRetriable"
    match how:
        case "profile":
            brings(fleet, "maxConsecutiveFailures: 2\n  tier: 50")
        case "contents":
            brings(fleet, "maxConsecutiveFailures: 2", "a", "b", "d")
        case "labels":
            fleet.declare.label(EAST, {"team": "blue"})
        case _:
            redeploy(fleet.installation(), "own")
    fleet.pump()
    assert (outcome(fleet).phase, outcome(fleet).counted) == ("Failed", 1)

    end()
    wait(fleet)
    assert outcome(fleet).phase == "Provisioned"


@pytest.mark.parametrize("how", ["profile", "contents", "labels"])
def test_after_a_change_the_first_pause_counts_again(
    fleet: Fleet, east: FakeKube, how: str
) -> None:
    """A correction that fails for a passing reason is not left for what its predecessor earned."""
    refuse(east, "b", InvalidError("no"))
    brings(fleet)
    first = outcome(fleet).retry_at
    assert first
    shortest = first - fleet.clock.now()
    wait(fleet, 6)
    last = outcome(fleet)
    assert last.retry_at
    assert last.retry_at - fleet.clock.now() > 4 * shortest

    match how:
        case "profile":
            brings(fleet, "tier: 50")
        case "contents":
            brings(fleet, "", "a", "b", "d")
        case _:
            fleet.declare.label(EAST, {"env": "production", "team": "blue"})
    fleet.pump()
    now = outcome(fleet)
    assert (now.phase, now.failures) == ("Failed", 1)
    assert now.retry_at
    assert now.retry_at - fleet.clock.now() < 2 * shortest


def test_what_was_given_up_is_withdrawn(fleet: Fleet, east: FakeKube) -> None:
    """What it has brought goes as ever, and nothing is left of it."""
    failing(fleet, east, 1)
    assert outcome(fleet).phase == "FailedNonRetriable"
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(east) == []
    assert fleet.records.outcomes.get(EAST, "own") is None


def test_a_success_ends_the_count(fleet: Fleet, east: FakeKube) -> None:
    """Failures count in a row alone."""
    end = failing(fleet, east, 2)
    end()
    wait(fleet)
    assert (outcome(fleet).phase, outcome(fleet).counted) == ("Provisioned", 0)
