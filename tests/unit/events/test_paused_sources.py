"""Paused clusters that triggers no longer select: what was made of them leaves once they resume."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from bellhop.operations.pause import clear_window, pause_cluster, set_window
from bellhop.settings import Settings
from tests.fakes import rig
from tests.fakes.fleet import EAST, Fleet, OpenFleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    cluster_set,
    config,
    holder,
    source,
    trigger,
)

SERVING = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: rings}
spec:
  deployedResourceConstraint:
    resourceSelectors: [{group: '', version: v1, kind: Service}]
  classifierLabels: [{key: class, value: rings}]
"""

Act = Callable[[Fleet], object]


def selecting(selector: str) -> str:
    """Return a trigger of the clusters that a selector selects, for hubs."""
    old = "sourceClusterSelector: {matchLabels: {env: production}}"
    rule = trigger(more="destinationClusterSelector: {matchLabels: {role: hub}}")
    assert old in rule
    return rule.replace(old, selector)


IN_PRODUCTION = selecting("sourceClusterSelector: {matchLabels: {env: production}}")
IN_TEST = selecting("sourceClusterSelector: {matchLabels: {env: test}}")
IN_SET = selecting("clusterSetRefs: [active]")
IN_CLASS = selecting("sourceClusterSelector: {matchLabels: {class: rings}}")

UNSELECTED = [
    pytest.param(
        IN_PRODUCTION, lambda fleet: fleet.declare.label(EAST, {"env": "test"}), id="by its label"
    ),
    pytest.param(IN_PRODUCTION, lambda fleet: fleet.apply(IN_TEST), id="by the trigger"),
    pytest.param(
        IN_SET, lambda fleet: fleet.declare.delete([("ClusterSet", "", "active")]), id="by a set"
    ),
    pytest.param(
        IN_CLASS,
        lambda fleet: fleet.declare.delete([("Classifier", "", "rings")]),
        id="by a classifier",
    ),
]


def stop(fleet: Fleet) -> None:
    pause_cluster(fleet.installation(), EAST, paused=True)


def resume(fleet: Fleet) -> None:
    pause_cluster(fleet.installation(), EAST, paused=False)


def close(fleet: Fleet) -> None:
    """Give the cluster a window that is closed for hours still."""
    opens = (fleet.clock.now() + timedelta(hours=3)).hour
    set_window(fleet.installation(), EAST, f"0 {opens} * * *", f"0 {(opens + 1) % 24} * * *")


def open_at_once(fleet: Fleet) -> None:
    clear_window(fleet.installation(), EAST)


def wait(fleet: Fleet) -> None:
    """Let time pass until the window has opened."""
    fleet.clock.advance(timedelta(hours=3))
    rig.tick(fleet)


PAUSES = [
    pytest.param(stop, resume, id="resumed"),
    pytest.param(close, open_at_once, id="its window ends"),
    pytest.param(close, wait, id="its window opens"),
]


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    """Open an installation without the deletion guard, which would hold all of these add-ons."""
    return open_fleet(Settings(hold_share=0))


@pytest.fixture
def clusters(fleet: Fleet) -> list[FakeKube]:
    """Register a cluster whose Service a trigger heeds, and a hub beside it that gets as much."""
    east = fleet.register("east", env="production", role="hub")
    west = fleet.register("west", role="hub")
    made = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.deploy(source(), made, cluster_set(None), SERVING)
    fleet.write("east", service("web"))
    fleet.pump()
    return [east, west]


def made(clusters: list[FakeKube]) -> list[list[str]]:
    return [kube.names() for kube in clusters]


@pytest.mark.parametrize("order", ["change, pause", "change, work, pause", "pause, work, change"])
@pytest.mark.parametrize(("begin", "end"), PAUSES)
@pytest.mark.parametrize(("rule", "change"), UNSELECTED)
def test_what_was_made_of_a_cluster_leaves_once_it_is_resumed(
    fleet: Fleet,
    clusters: list[FakeKube],
    rule: str,
    change: Act,
    begin: Act,
    end: Act,
    order: str,
) -> None:
    """In all clusters, whatever was first, and no resync is needed for it."""
    fleet.deploy(rule)
    assert made(clusters) == [["for-web"], ["for-web"]]

    acts: dict[str, Act] = {"change": change, "pause": begin, "work": Fleet.pump}
    for act in order.split(", "):
        acts[act](fleet)
    fleet.pump()
    stays = [] if order == "change, work, pause" else ["for-web"]
    assert made(clusters) == [stays, stays]

    end(fleet)
    fleet.pump()

    assert made(clusters) == [[], []]
    assert list(fleet.records.outcomes.of(EAST)) == []
    assert rig.left_over(fleet) == []
