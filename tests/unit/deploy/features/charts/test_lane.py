"""Calls of Helm that may last long: they leave workers to all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from bellhop.deploy.features.charts.lane import MOST
from bellhop.runtime.embedded.workers import _WORKERS
from bellhop.state.delays import retry_timer
from bellhop.state.messages import CHARTS
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.releases import chart, charts, data, outcome
from tests.unit.deploy.features.charts.test_readiness import waited

QUEUED = "waiting until Helm has ended with another release in"


def hook(kind: str) -> Mapping[str, object]:
    metadata = {"name": "j", "annotations": {"helm.sh/hook": kind}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def during(fleet: Fleet, do: Callable[[], None]) -> None:
    """Do something while Helm deploys the next release."""

    def meanwhile() -> None:
        do()
        fleet.pump()

    fleet.charts.meanwhile.append(meanwhile)


def slow(name: str, more: str = "") -> str:
    """Return a profile whose chart Helm waits for itself."""
    return waited(", atomic: true", name=name, profile=name, spec=more)


def test_calls_that_may_last_long_never_have_all_workers() -> None:
    """At most half of them, so that what is quick or taken back goes on."""
    assert 0 < MOST <= _WORKERS[CHARTS] // 2


@pytest.mark.parametrize("hooks", [False, True], ids=["atomic", "hooks"])
def test_profiles_of_one_cluster_go_on_while_helm_waits_for_a_chart(
    fleet: Fleet, east: FakeKube, *, hooks: bool
) -> None:
    """A second one that may take long comes as soon as Helm has ended; that is no failure."""
    fleet.deploy(charts("old", of=chart(name="old", values="replicas: zero")))
    if hooks:
        fleet.charts.hooks = [dict(hook("pre-install"))]
    found: dict[str, tuple[str, str]] = {}

    def others() -> None:
        fleet.apply(slow("second", "maxConsecutiveFailures: 1"))
        fleet.charts.hooks.clear()
        fleet.apply(charts("good", of=chart(name="good", values="replicas: two")))
        fleet.declare.delete([("ClusterProfile", "", "old")])
        fleet.release()
        fleet.pump()
        found.update({name: outcome(fleet, name) for name in ("second", "good", "old")})
        # If this process dies, nobody but the timer publishes it.
        assert fleet.records.timers.get(retry_timer("fleet/east", "second"))

    during(fleet, others)
    fleet.deploy(charts("first", of=chart(name="first")) if hooks else slow("first"))
    assert found["good"] == ("Provisioned", "")
    assert found["old"] == ("", "")
    assert found["second"][0] == "Provisioning"
    assert found["second"][1].startswith(f"{QUEUED} this cluster")

    assert outcome(fleet, "second") == ("Provisioned", "")
    assert set(data(east)) == {"first-config", "second-config", "good-config"}


@pytest.mark.usefixtures("east")
def test_a_few_clusters_at_a_time_have_helm_wait(fleet: Fleet) -> None:
    """Of three clusters the last one has its turn as soon as another has ended."""
    names = ("east", "north", "west")
    for name in names[1:]:
        fleet.register(name, env="production")
    found: list[str] = []

    def note() -> None:
        fleet.pump()
        kept = (fleet.records.outcomes.get(f"fleet/{name}", "p") for name in names)
        found.extend(each.value.message for each in kept if each)

    during(fleet, note)
    during(fleet, fleet.pump)
    fleet.deploy(waited(", atomic: true"))
    assert [each for each in found if each.startswith(QUEUED)]
    assert len(fleet.charts.releases) == len(names)


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("asked", [False, True], ids=["deleted", "Uninstall"])
def test_a_removal_with_hooks_has_its_turn_like_a_deployment(fleet: Fleet, *, asked: bool) -> None:
    """Helm's record stays as it is until then."""
    fleet.charts.hooks = [dict(hook("pre-delete"))]
    fleet.deploy(charts("old", of=chart(name="old")))
    fleet.charts.hooks.clear()
    found: list[str] = []

    def remove() -> None:
        if asked:
            fleet.apply(charts("old", of=chart("helmChartAction: Uninstall", name="old")))
        else:
            fleet.declare.delete([("ClusterProfile", "", "old")])
        fleet.release()
        fleet.pump()
        found.append(outcome(fleet, "old")[1])
        assert fleet.charts.removals == []

    during(fleet, remove)
    fleet.deploy(slow("first"))
    assert found[0].startswith(QUEUED)

    assert [name for _, _, name in fleet.charts.releases] == ["first"]
    assert outcome(fleet, "old") == (("Provisioned", "") if asked else ("", ""))
