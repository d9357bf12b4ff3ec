"""An installation for each test, on the session's moto server or on Google's emulators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.lab.cluster import Cluster
from tests.functions.gcp_lab import Flow, Project, Stand
from tests.functions.lab import Account
from tests.functions.writes import Writes
from tests.lab.google_storage import Storage
from tests.lab.moto import Moto


@pytest.fixture
def account(moto: Moto) -> Iterator[Account]:
    one = Account(moto, attempts=3, retry_first=1, retry_longest=1)
    yield one
    one.close()


@pytest.fixture
def tries() -> int | None:
    """After how many pushes in vain Pub/Sub buries a message, if ever; it takes 5 to 100."""
    return None


SETTINGS: dict[str, Any] = {"attempts": 4, "retry_first": 1, "retry_longest": 1, "visibility": 5}
"""Of installations on Google: pauses that a test can wait for."""


@pytest.fixture
def project(pubsub_place: str, storage: Storage, tries: int | None) -> Iterator[Project]:
    one = Project(pubsub_place, storage, tries=tries, **SETTINGS)
    yield one
    one.close()


@pytest.fixture
def stand(
    project: Project, google_sources: Path, google_installed: Path, tmp_path: Path
) -> Iterator[Stand]:
    """A project with its functions at work."""
    one = Stand(project, google_sources, google_installed, tmp_path)
    yield one
    one.close()


@pytest.fixture(scope="class")
def shared_flow(
    shared_place: str,
    _storage: Storage,
    google_sources: Path,
    google_installed: Path,
    both_clusters: tuple[Cluster, Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Flow]:
    """The same between two clusters, for all tests of a class.

    Its first test waits until several processes of each function have started.
    """
    place = json.loads(shared_place)
    with Writes(place["emulators"]) as writes:
        place["emulators"] |= writes.emulators
        # As many attempts as everywhere: who waits for one that died with a lease uses them up.
        project = Project(json.dumps(place), _storage, **{**SETTINGS, "attempts": 12})
        # Several processes of each, as Cloud Run has several instances.
        project.environment["WORKERS"] = "2"
        folder = tmp_path_factory.mktemp("functions")
        stand = Stand(project, google_sources, google_installed, folder)
        one = Flow(stand, *both_clusters, writes)
        yield one
        one.close()
        stand.close()
        project.close()


@pytest.fixture
def flow(shared_flow: Flow) -> Iterator[Flow]:
    """That, without anything that an earlier test has made."""
    yield shared_flow
    shared_flow.end()
