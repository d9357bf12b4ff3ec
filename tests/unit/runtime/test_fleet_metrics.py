"""Metrics that name clusters and profiles: only on request, and only so many."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from bellhop.errors import DeniedError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.embedded import gauges
from bellhop.runtime.embedded.gauges import Gauges, clusters_by_name, profiles_by_name
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster, Health
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

OWN = join(profile(), holder("own", config("own")))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    one = Fleet(tmp_path)
    yield one
    one.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    one = open_state(tmp_path / "state", Settings())
    yield one
    one.close()


def samples(here: Installation, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric by its labels."""
    return {
        tuple(each.labels.values()): each.value
        for family in (*clusters_by_name(here), *profiles_by_name(here))
        for each in family.samples
        if each.name == f"bellhop_{name}"
    }


def test_a_cluster_has_its_state_and_the_end_of_its_credentials(fleet: Fleet) -> None:
    """One whose credentials do not expire has no end."""
    fleet.register("east")
    fleet.register("west")
    now = fleet.clock.now()
    fleet.records.health.put("fleet/east", Health("Down", ends_at=now + timedelta(days=3)))
    here = fleet.installation()

    states = {key[:2] for key in samples(here, "cluster_info")}
    assert states >= {("fleet/east", "Down")}
    assert {key[0] for key in states} == {"fleet/east", "fleet/west"}
    ends = samples(here, "cluster_credentials_expiry_timestamp_seconds")
    assert ends == {("fleet/east",): (now + timedelta(days=3)).timestamp()}


def test_a_profile_has_one_status(fleet: Fleet) -> None:
    """It changes with the profile; the value counts the clusters that it selects."""
    east = fleet.register("east", env="production")
    fleet.register("west", env="production")
    fleet.apply(OWN)
    fleet.pump()
    here = fleet.installation()
    assert samples(here, "profile_status") == {("ClusterProfile/own", "Provisioned"): 2}

    east.fail_with(DeniedError("may not apply"), "apply")
    fleet.apply(holder("own", config("own", "v: bad")))
    fleet.pump()
    assert samples(here, "profile_status") == {("ClusterProfile/own", "Failed"): 2}


def test_only_so_many_names_are_exported(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are counted."""
    monkeypatch.setattr(gauges, "MOST_NAMES", 1)
    fleet.register("east")
    fleet.register("west")
    fleet.apply(OWN)
    here = fleet.installation()

    assert {key[0] for key in samples(here, "cluster_info")} == {"fleet/east"}
    assert samples(here, "clusters_left_out") == {(): 1}
    assert samples(here, "profiles_left_out") == {(): 0}


@pytest.mark.parametrize("labels", [(), ("cluster",), ("profile",), ("cluster", "profile")])
def test_names_are_exported_only_on_request(embedded: Embedded, labels: tuple[str, ...]) -> None:
    """By default no label names anything of a fleet."""
    records = embedded.installation.records
    records.clusters.put(Cluster("prod", "a", {}, "v1.31.0", "d", records.clock.now()))
    gauges = Gauges(embedded, Log(io.StringIO()), 30.0, labels)
    registry = CollectorRegistry()
    registry.register(gauges)
    names = {family.name for family in registry.collect()}
    gauges.close()

    assert ("bellhop_cluster_info" in names) == ("cluster" in labels)
    assert ("bellhop_profile_status" in names) == ("profile" in labels)
