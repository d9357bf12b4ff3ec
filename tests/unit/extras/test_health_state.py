"""Healthy and unhealthy clusters, and the notices about them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from bellhop.api.health_check import NotificationPolicy
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.extras.health.records import Condition, Notice
from bellhop.extras.health.state import (
    PAUSE,
    State,
    addons,
    claimed,
    condition,
    failed,
    owed,
    resources,
    sent,
    together,
    with_notice,
)
from bellhop.state.deployment import DeploymentStatus, Phase
from bellhop.state.match import Selected, Selection
from tests.fakes.clock import START

NO_TIME = timedelta(0)


def outcomes(*phases: Phase) -> list[DeploymentStatus]:
    return [
        DeploymentStatus("fleet/east", f"p{number}", "", "", phase, START, message=f"m{number}")
        for number, phase in enumerate(phases)
    ]


@pytest.mark.parametrize(
    ("phases", "healthy"),
    [
        pytest.param((), True, id="nothing is to be there"),
        pytest.param(("Provisioned",), True, id="all are deployed"),
        pytest.param(("Provisioned", "Provisioning"), None, id="one is on its way"),
        pytest.param(("Provisioning", "Failed"), False, id="one has failed"),
        pytest.param(("Provisioned", "FailedNonRetriable"), False, id="one was given up"),
        pytest.param(("DryRun", "Removed"), True, id="what is tried or gone does not count"),
    ],
)
def test_evaluates_a_cluster_by_its_profiles(
    phases: tuple[Phase, ...],
    healthy: bool | None,  # noqa: FBT001 - a table
) -> None:
    """While some are on their way nobody knows, unless one has failed."""
    found = addons(outcomes(*phases))

    assert (found and found.healthy) == healthy


def test_names_a_few_profiles_that_failed() -> None:
    """With what they fail on; the rest is counted."""
    found = addons(outcomes("Failed", "Failed", "Failed", "Failed", "Failed"))

    assert found
    assert found.message == (
        "ClusterProfile/p0: m0; ClusterProfile/p1: m1; ClusterProfile/p2: m2; and 2 more"
    )


def due(found: Condition, now: datetime) -> list[Notice]:
    return [each for at, each in owed(found, {}) if at <= now]


def test_a_notice_is_pending_until_it_is_sent() -> None:
    """A claim puts it off, longer with each failure; what was sent has no failure any more."""
    found = condition(None, State(healthy=False, message="why"), ["chat"], START, {})
    [notice] = due(found, START)
    claim = claimed(notice, START)
    assert due(with_notice(found, claim), START + PAUSE / 2) == []
    assert due(with_notice(found, claim), START + PAUSE) == [claim]

    twice = failed(failed(claim, "no"), "no")
    assert claimed(twice, START).until == START + 4 * PAUSE
    forever = Notice("chat", failures=99)
    assert claimed(forever, START).until == START + timedelta(hours=1)
    result = sent(twice, healthy=False, until=START)
    assert (result.failures, result.error, result.until) == (0, "", claim.until)
    assert owed(with_notice(found, result), {}) == []


def test_why_a_notice_failed_is_kept_with_its_end() -> None:
    """A right that is missing is named after names of any length; an essay is cut."""
    long = f"cannot apply Event '{'x' * 253}': events \"{'x' * 253}\" is forbidden: why"

    assert failed(Notice("event"), long).error == long
    assert len(failed(Notice("event"), "x" * 9999).error) == 1000


def test_a_policy_delays_notices() -> None:
    """Patience delays only that of an unhealthy cluster; an interval the one after a notice."""
    policies = {"chat": NotificationPolicy(min_interval="1h", failing_for="5m")}
    ill = condition(None, State(healthy=False, message="why"), ["chat"], START, {})
    [(at, notice)] = owed(ill, policies)
    assert at == START + timedelta(minutes=5)

    notified = with_notice(
        ill, sent(claimed(notice, at), healthy=False, until=at + timedelta(hours=1))
    )
    well = condition(notified, State(healthy=True, message="all"), ["chat"], at, {})
    assert [each for each, _ in owed(well, policies)] == [at + timedelta(hours=1)]
    at_once = condition(notified, State(healthy=True, message="all"), ["chat"], at + 60 * PAUSE, {})
    assert [each for each, _ in owed(at_once, policies)] == [at + timedelta(hours=1)]


def test_a_notice_is_repeated_only_while_a_cluster_is_unhealthy() -> None:
    """Alertmanager ends an alert that is not sent again, and so does its notice."""
    ill = condition(None, State(healthy=False, message="why"), ["pager", "chat"], START, {})
    for each in ill.notices:
        ill = with_notice(ill, sent(each, healthy=False, until=START + PAUSE))
    [(at, notice)] = owed(ill, {}, ["pager"])
    assert (at, notice.name) == (START + 2 * PAUSE, "pager")
    assert failed(notice, "no").told is False
    assert failed(notice, "no", repeats=True).told is True

    well = condition(ill, State(healthy=True, message="all"), ["pager"], START, {})
    assert [each for each, _ in owed(well, {}, ["pager"])] == [START + PAUSE]
    notified = with_notice(well, sent(notice, healthy=True, until=at))
    assert owed(notified, {}, ["pager"]) == []


def test_a_condition_keeps_since_when_it_is_so() -> None:
    """Its other fields may change; nothing is kept of a deleted notification."""
    first = condition(None, State(healthy=False, message="a"), ["x", "y"], START, {})
    later = START + PAUSE
    second = condition(first, State(healthy=False, message="b"), ["y"], later, {})
    assert (second.since, second.message, second.notices) == (START, "b", (Notice("y"),))

    assert condition(second, State(healthy=True, message="c"), ["y"], later, {}).since == later


def selection(*states: str, made: bool = True, error: str = "") -> Selection:
    found = tuple(
        Selected(
            ObjectKey(GVK("", "v1", "Node"), "", f"n{number}"),
            state,
            START,
            {"healthStatus": state},
        )
        for number, state in enumerate(states)
    )
    return Selection("fleet/east", "s", START, found, made=made, message="all", error=error)


@pytest.mark.parametrize(
    ("found", "healthy"),
    [
        pytest.param(None, None, id="nothing was made"),
        pytest.param(selection(made=False), None, id="none yet"),
        pytest.param(selection(), True, id="nothing is not well"),
        pytest.param(selection("Degraded"), False, id="one is not well"),
        pytest.param(selection(made=False, error="e"), False, id="the script fails at first"),
        pytest.param(selection(error="e"), False, id="the script fails later"),
    ],
)
def test_a_cluster_without_unhealthy_resources_is_healthy(
    found: Selection | None, *, healthy: bool | None
) -> None:
    """And where the script can say so."""
    state = resources("nodes", found, NO_TIME, START)

    assert (state and state.healthy) == healthy


def test_the_first_resources_that_are_not_well_are_named() -> None:
    """With how many more there are."""
    state = resources("nodes", selection(*["Degraded"] * 5), NO_TIME, START)

    assert state
    assert state.message == (
        "Node 'n0' is Degraded; Node 'n1' is Degraded; Node 'n2' is Degraded; and 2 more"
    )


def test_what_is_not_well_for_a_moment_does_not_count() -> None:
    """And it is known when it will; the former condition is reported meanwhile."""
    young = selection("Degraded")
    half, whole = timedelta(seconds=10), timedelta(seconds=20)
    first = resources("nodes", young, whole, START + half)
    assert first == State(
        healthy=True, message="nodes: all, and none for long enough yet", until=START + whole
    )
    later = resources("nodes", young, whole, START + whole)
    assert later == State(healthy=False, message="Node 'n0' is Degraded")

    [one] = young.selected
    old = replace(one, key=ObjectKey(GVK("", "v1", "Node"), "", "old"), since=START - whole)
    both = resources("nodes", replace(young, selected=(one, old)), whole, START)
    assert both == State(healthy=False, message="Node 'old' is Degraded", until=START + whole)


WELL, ILL = State(healthy=True, message="w"), State(healthy=False, message="i")


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        pytest.param([WELL, WELL], State(healthy=True, message="w; w"), id="all are well"),
        pytest.param([WELL, ILL, None], ILL, id="one that fails is enough"),
        pytest.param([WELL, None], None, id="nobody knows one"),
    ],
)
def test_checks_count_together(checks: list[State | None], found: State | None) -> None:
    """Only a check without a result waits."""
    assert together(dict(zip("abc", checks, strict=False))) == found
