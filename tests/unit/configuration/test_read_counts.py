"""Reads of the writer of statuses and mirrors: they grow with clusters, not with their square."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.state.messages import WriteStatus, read
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.unit.configuration.test_writer import PAUSE, PROFILE, Hub, generated

FEW, MANY = 30, 90
SELECTED = "clusterSelector: {matchLabels: {of: all}}"
OWN = join(profile(SELECTED), holder("own", config("configured")))
MESSAGE = WriteStatus("ClusterProfile", "", "own")


def open_hub(folder: Path, clusters: int) -> Hub:
    """Open an installation with so many clusters that have a label."""
    fleet = Fleet(folder)
    hub = Hub(fleet)
    for number in range(clusters):
        fleet.register(f"to-{number}", of="all")
    return hub


def count_reads(hub: Hub, message: WriteStatus) -> int:
    """Return the reads of the second time that a message is handled."""
    hub.write(message)
    before = hub.fleet.store.counts["get"]
    hub.write(message)
    return hub.fleet.store.counts["get"] - before


def deploy_own(hub: Hub) -> WriteStatus:
    hub.fleet.deploy(OWN)
    hub.store(profile(SELECTED))
    return MESSAGE


def deploy_generated(hub: Hub) -> WriteStatus:
    more = f"destinationClusterSelector: {SELECTED.partition(': ')[2]}"
    made = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    hub.fleet.register("east", env="production")
    hub.fleet.deploy(join(source(), trigger(more=more), made))
    hub.fleet.write("east", service("a"))
    hub.fleet.pump()
    return generated(hub.fleet)


@pytest.mark.parametrize("deploy", [deploy_own, deploy_generated])
def test_a_summary_needs_as_many_reads_however_many_clusters_there_are(
    tmp_path: Path, deploy: Callable[[Hub], WriteStatus]
) -> None:
    counted = []
    for clusters in (FEW, MANY):
        hub = open_hub(tmp_path / str(clusters), clusters)
        message = replace(deploy(hub), gathered=True)
        hub.write(message)
        counted.append(count_reads(hub, replace(message, cluster="fleet/to-1", gathered=False)))
        hub.fleet.close()

    assert counted[0] == counted[1] < FEW


@pytest.mark.parametrize("deploy", [deploy_own, deploy_generated])
def test_many_deployments_are_counted_once_for_the_messages_of_a_moment(
    tmp_path: Path, deploy: Callable[[Hub], WriteStatus]
) -> None:
    """A timer counts them: each of the messages only sees that it is set."""
    hub = open_hub(tmp_path, MANY)
    message = deploy(hub)
    timers, name = hub.fleet.records.timers, _timer(message)
    assert hub.write(message) == []
    kept = timers.get(name)
    before = hub.fleet.store.counts["get"]

    for _ in range(MANY):
        assert hub.write(message, wait=False) == []

    assert hub.fleet.store.counts["get"] - before <= 10 * MANY
    assert kept
    assert timers.get(name) == kept
    assert kept.value.at == hub.fleet.clock.now() + PAUSE
    hub.write(read(kept.value.body))
    shown = hub.kube.objects(PROFILE)[0]
    assert len(shown["status"]["updatedClusters"]["clusters"]) == MANY
    hub.fleet.close()


def test_a_trigger_of_many_deployments_is_counted_once_too(tmp_path: Path) -> None:
    hub = open_hub(tmp_path, MANY)
    deploy_generated(hub)
    message = WriteStatus("EventTrigger", "", "made")

    hub.write(message)

    assert hub.fleet.records.timers.get(_timer(message))
    hub.fleet.close()


def _timer(message: WriteStatus) -> str:
    owner = message.trigger or message.kind, message.source, message.name
    return "status/" + "/".join(owner)
