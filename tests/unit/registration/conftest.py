"""Two real clusters to register."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.installation import Inbound, Installation
from bellhop.registration.registration import register
from bellhop.registration.request import Registered, Registration
from infra.lab.cluster import Cluster

Wished = Callable[..., Registration]
Enroll = Callable[..., Registered]


@pytest.fixture
def wished() -> Wished:
    """Return a factory of requests to register a cluster."""

    def spec(cluster: Cluster, name: str = "eu-1", **more: object) -> Registration:
        return Registration(
            "prod",
            name,
            sanitise(cluster.kubeconfig(), reach=LOCAL),
            **{"labels": None, "inbound": Inbound("https://ingest.example", ""), **more},  # type: ignore[arg-type]
        )

    return spec


@pytest.fixture
def enroll(here: Installation, wished: Wished, source_cluster: Cluster) -> Enroll:
    """Register the first cluster, or another one; as prod/eu-1 unless another name is given."""

    def run(
        name: str = "eu-1",
        *,
        cluster: Cluster = source_cluster,
        pause: Callable[[float], object] = time.sleep,
        **more: object,
    ) -> Registered:
        return register(here, wished(cluster, name, **more), pause=pause)

    return run


@pytest.fixture
def source(source_cluster: Cluster) -> Iterator[KubeClient]:
    """The first cluster, for a look at what was done to it."""
    client = KubeClient("source", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def destination(destination_cluster: Cluster) -> Iterator[KubeClient]:
    """The second cluster, for a look at what was done to it."""
    client = KubeClient(
        "destination", sanitise(destination_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL
    )
    yield client
    client.close()
