"""Clusters whose events nobody kept are resynced when `serve` starts."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.logs import Log
from bellhop.runtime.embedded.lifecycle import LONGEST, resync_unbuffered
from bellhop.runtime.embedded.serve import running
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import Resync
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import value_of
from tests.waiting import eventually

POLICY = GVK("networking.k8s.io", "v1", "NetworkPolicy")
SECOND = timedelta(seconds=1)
DIRECT = {"direct": "yes", "url": "https://127.0.0.1:1", "ca": "PEM", "path": "/t"}


def wire(fleet: Fleet, name: str, forwarder: dict[str, str]) -> None:
    cluster = value_of(fleet.records.clusters.get(f"fleet/{name}"))
    assert cluster
    fleet.declare.register(replace(cluster, forwarder=forwarder))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Bellhop on the local adapters, with clusters that are fakes."""
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.close()


@pytest.mark.parametrize("forwarder", [DIRECT, {"audit": "yes"}], ids=["direct", "audit"])
def test_finds_at_start_what_happened_meanwhile(fleet: Fleet, forwarder: dict[str, str]) -> None:
    """An object that came while nothing listened matches in a second, not at the next resync."""
    east = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    fleet.pump()
    wire(fleet, "east", forwarder)
    fleet.pump()
    east.put(service("web"))
    fleet.clock.advance(SECOND)
    fleet.pump()
    assert east.objects(POLICY) == []

    assert resync_unbuffered(fleet.records) == 1
    fleet.pump()

    assert [each["metadata"]["name"] for each in east.objects(POLICY)] == ["front-web"]


def test_leaves_clusters_with_a_forwarder_to_it(fleet: Fleet) -> None:
    """It keeps what happens on its disk, and asks for a resync itself."""
    fleet.register("east", env="production")
    fleet.register("west")
    wire(fleet, "west", {"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/ring/x"})

    assert resync_unbuffered(fleet.records) == 0


def test_spreads_the_resyncs_of_a_large_fleet(fleet: Fleet) -> None:
    """All of them within a minute, each at a time of its own, and none later than it was due."""
    names = [f"c{number}" for number in range(40)]
    for name in names:
        fleet.register(name)
        wire(fleet, name, DIRECT)
    now = fleet.clock.now()
    soon = now + timedelta(milliseconds=1)
    fleet.records.timers.set(sweep_timer("fleet/c7"), soon, Resync("fleet/c7").message().body)

    assert resync_unbuffered(fleet.records) == len(names)
    timers = {name: fleet.records.timers.get(sweep_timer(f"fleet/{name}")) for name in names}

    times = {name: each.value.at for name, each in timers.items() if each}
    assert len(set(times.values())) == len(names)
    assert now <= min(times.values())
    assert max(times.values()) <= now + LONGEST
    assert times["c7"] == soon


def test_serve_begins_with_it(tmp_path: Path) -> None:
    """The timer of a cluster in direct mode fires at once, and is set again."""
    settings, now = Settings(), datetime.now(UTC)
    name, due = sweep_timer("fleet/east"), now + settings.sweep_interval * 0.9
    state = open_state(tmp_path / "state", settings)
    records = state.installation.records
    records.clusters.put(
        Cluster("fleet", "east", {}, "v1.20.2", "0" * 64, now, forwarder=DIRECT), expect=None
    )
    records.timers.set(name, due, Resync("fleet/east").message().body)

    with running(tmp_path / "state", settings, Log(io.StringIO()), "127.0.0.1", 0):
        eventually(
            "the timer is set again",
            lambda: (timer := records.timers.get(name)) and timer.value.at != due,
        )
    state.close()
