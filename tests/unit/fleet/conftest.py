"""An installation whose time a test moves, and two real clusters to register."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.embedded.state import open_state
from bellhop.fleet.installation import Inbound, Installation
from bellhop.fleet.registration import Wish
from bellhop.model.kubeconfig import sanitise
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock

Wished = Callable[..., Wish]


@pytest.fixture
def clock() -> FakeClock:
    """The installation's time."""
    return FakeClock()


@pytest.fixture
def here(tmp_path: Path, clock: FakeClock) -> Iterator[Installation]:
    """An installation with no cluster yet."""
    opened = open_state(tmp_path / "state", Settings(), clock=clock)
    yield opened.installation
    opened.close()


@pytest.fixture
def wished() -> Wished:
    """What somebody asks for who registers a cluster."""

    def wish(cluster: Cluster, name: str = "eu-1", **more: object) -> Wish:
        return Wish(
            "prod",
            name,
            sanitise(cluster.kubeconfig()),
            **{"labels": None, "inbound": Inbound("https://ingest.example", ""), **more},  # type: ignore[arg-type]
        )

    return wish


@pytest.fixture
def source(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The first cluster, for a look at what was done to it."""
    client = KubeClient("source", sanitise(source_cluster.kubeconfig()))
    yield client
    client.close()


@pytest.fixture
def destination(destination_cluster: Cluster) -> Iterator[KubeClient]:
    """The second cluster, for a look at what was done to it."""
    client = KubeClient("destination", sanitise(destination_cluster.kubeconfig()))
    yield client
    client.close()
