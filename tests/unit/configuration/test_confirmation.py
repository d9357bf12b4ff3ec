"""`bellhop status` says since when the configuration is not confirmed, and all stays in force."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.configuration.origin import clear_configuration_cluster
from bellhop.diagnosis.condition import Condition
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import BellhopError, DeniedError, UnauthorizedError, UnreachableError
from tests.fakes.manifests import config, holder, profile
from tests.unit.configuration.hub import HUB, Hub, find_gvk


def find_doubts(hub: Hub, unanswered: str = "") -> list[Condition]:
    """Return the lines about the configuration as a whole."""
    asked = {HUB: unanswered} if unanswered else {}
    found = list_failures(hub.fleet.installation(), asked)
    return [each for each in found if each.type == "configuration"]


@pytest.mark.parametrize(
    ("error", "verbs"),
    [
        pytest.param(UnreachableError("no route"), (), id="unreachable"),
        pytest.param(UnauthorizedError("no login"), (), id="unauthorized"),
        pytest.param(DeniedError("no right"), ("list",), id="rights"),
    ],
)
def test_it_is_not_confirmed_since_it_was_compared_last(
    hub: Hub, error: BellhopError, verbs: tuple[str, ...]
) -> None:
    """The line names the reason and the cure, and goes once all was read again."""
    hub.write(profile(), holder("own", config("made")))
    hub.fleet.resync(HUB)
    last = hub.fleet.clock.now()
    assert find_doubts(hub) == []

    hub.kube.fail_with(error, *verbs)
    for _ in range(3):
        hub.fleet.clock.advance(timedelta(minutes=6))
        hub.fleet.resync(HUB)
    [found] = find_doubts(hub)
    assert (found.about, found.since) == (HUB, last)
    assert str(error) in found.message
    assert f"`bellhop doctor {HUB}`" in found.message
    assert hub.east.names() == ["made"]
    assert hub.read("ClusterProfile", "own").in_force

    hub.kube.fail_with(None)
    hub.fleet.wait(timedelta(minutes=10), times=3)
    assert find_doubts(hub) == []


def test_a_kind_that_is_not_served_leaves_it_unconfirmed(hub: Hub) -> None:
    hub.fleet.resync(HUB)
    hub.kube.unserve(find_gvk("EventTrigger"))
    hub.fleet.resync(HUB)

    [found] = find_doubts(hub)
    assert "EventTrigger" in found.message


def test_a_call_that_fails_now_is_enough(hub: Hub) -> None:
    """`bellhop status` calls clusters that were not reached lately."""
    hub.fleet.resync(HUB)
    [found] = find_doubts(hub, "no answer")
    assert "no answer" in found.message


def test_a_preview_and_files_need_no_confirmation(hub: Hub) -> None:
    hub.fleet.resync(HUB)
    hub.fleet.declare.configure(HUB, "preview")
    assert find_doubts(hub, "no answer") == []
    hub.fleet.declare.configure(HUB, "on")

    clear_configuration_cluster(hub.fleet.installation())
    assert find_doubts(hub, "no answer") == []
    assert hub.fleet.records.confirmations.get(HUB) is None
