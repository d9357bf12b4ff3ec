"""Real clusters for tests: booted once in a session, by the first test that needs one.

Use as a plugin (`pytest_plugins = ["tests.kube_fixtures"]`). Each test finds its clusters as
they were after boot. `stop()` and `start()` of a cluster play an outage; a cluster that a test
leaves stopped is up again for the next.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.lab.binaries import Binaries, find
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from tests.missing import required


@pytest.fixture(scope="session")
def control_plane_binaries() -> Binaries:
    """The binaries."""
    with required():
        return find()


@pytest.fixture(scope="session")
def control_plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The session's control plane, without clusters of its own.

    The first test that needs it waits until etcd has started.
    """
    with ControlPlane(control_plane_binaries, tmp_path_factory.mktemp("lab") / "state") as plane:
        yield plane


@pytest.fixture(scope="session")
def two_clusters(control_plane: ControlPlane) -> tuple[Cluster, Cluster]:
    """Two clusters, as the last test left them.

    The first test that needs them waits until their API servers have booted.
    """
    source, destination = control_plane.start_clusters("source", "destination")
    return source, destination


@pytest.fixture(scope="session")
def _governed(control_plane: ControlPlane) -> Cluster:
    return control_plane.start_cluster("governed", controllers=True)


@pytest.fixture
def source_cluster(two_clusters: tuple[Cluster, Cluster]) -> Cluster:
    """The cluster that events come from, as after boot."""
    return as_after_boot(two_clusters[0])


@pytest.fixture
def destination_cluster(two_clusters: tuple[Cluster, Cluster]) -> Cluster:
    """The cluster that add-ons go to, as after boot."""
    return as_after_boot(two_clusters[1])


@pytest.fixture(scope="class")
def both_clusters(two_clusters: tuple[Cluster, Cluster]) -> tuple[Cluster, Cluster]:
    """Source and destination for all tests of a class, as after boot for the first of them."""
    source, destination = two_clusters
    return as_after_boot(source), as_after_boot(destination)


@pytest.fixture
def governed_cluster(_governed: Cluster) -> Cluster:
    """A cluster with controllers: garbage is collected, namespaces end, roles are aggregated."""
    return as_after_boot(_governed)


def as_after_boot(cluster: Cluster) -> Cluster:
    """Have a cluster run, and be as it was after boot.

    One that an earlier test has stopped boots once more, which takes seconds.
    """
    cluster.start()
    cluster.reset()
    return cluster
