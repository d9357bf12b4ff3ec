"""Google Cloud for tests: its own emulators, each started once by the first test that needs it.

Nothing in them is emptied between tests: each takes a project of its own, of which any exists.
With `--live-project` the contract suites run in a real project instead (live_google.py), and
whatever needs the lab's servers themselves is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from bellhop.adapters.gcp.secrets import COLLECTION
from bellhop.adapters.gcp.store import DATABASE, ITEMS
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from tests import live_google
from tests.kube_fixtures import as_after_boot
from tests.lab.google import FIRESTORE, PUBSUB, Emulator, Program
from tests.lab.google_container import Gke
from tests.lab.google_front import Front
from tests.lab.google_secrets import SecretManager
from tests.lab.google_storage import Storage
from tests.missing import required


@pytest.fixture(scope="session")
def live_project(pytestconfig: pytest.Config) -> live_google.Project | None:
    """The project that a run is to use, if it is."""
    return live_google.chosen(pytestconfig)


@pytest.fixture(scope="session")
def only_lab(live_project: live_google.Project | None) -> None:
    """Skip what is about the lab where a run is about Google."""
    if live_project:
        pytest.skip("it is about servers of the lab, and this run is about Google")


def _started(program: Program, folders: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(program, folders.mktemp(program.name))
    with required():
        emulator.start()
    yield emulator
    emulator.close()


@pytest.fixture(scope="session")
def firestore(only_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The session's Firestore.

    The first test that needs it waits until the emulator has booted.
    """
    del only_lab
    yield from _started(FIRESTORE, tmp_path_factory)


@pytest.fixture(scope="session")
def pubsub(only_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The session's Pub/Sub.

    The first test that needs it waits until the emulator has booted.
    """
    del only_lab
    yield from _started(PUBSUB, tmp_path_factory)


@pytest.fixture
def front(firestore: Emulator) -> Iterator[Front]:
    """The session's Firestore, which counts its requests, and fails on demand."""
    with Front(firestore.address) as before:
        yield before


@pytest.fixture(scope="session")
def secret_manager(only_lab: None) -> Iterator[SecretManager]:
    """The session's Secret Manager."""
    del only_lab
    with SecretManager() as server:
        yield server


@pytest.fixture(scope="session")
def _storage(only_lab: None) -> Iterator[Storage]:
    del only_lab
    with Storage() as server:
        yield server


@pytest.fixture
def storage(_storage: Storage) -> Iterator[Storage]:
    """The session's Cloud Storage, which fails in no way that another test asked for."""
    yield _storage
    _storage.forgive()


@pytest.fixture
def google_project() -> str:
    """A project that nobody else uses; it is there as soon as it is named."""
    return f"bellhop-{uuid4().hex[:12]}"


@pytest.fixture
def google_place(
    live_project: live_google.Project | None, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The place of an installation that nobody else uses."""
    if live_project is None:
        yield _lab(*map(request.getfixturevalue, ("firestore", "secret_manager", "storage")))
        return
    place = live_project.install()
    yield place
    live_google.remove(place)


def _lab(firestore: Emulator, secret_manager: SecretManager, storage: Storage) -> str:
    """Make an installation in the lab, in a project of its own; return its place."""
    project = f"bellhop-{uuid4().hex[:12]}"
    storage.make(project)
    emulators = {
        "FIRESTORE_EMULATOR_HOST": firestore.address,
        "SECRET_MANAGER_EMULATOR_HOST": secret_manager.address,
        "STORAGE_EMULATOR_HOST": storage.address,
    }
    names = {"database": DATABASE, "bucket": project, "items": ITEMS, "secrets": COLLECTION}
    return json.dumps({"project": project, "emulators": emulators, **names})


@pytest.fixture
def pubsub_place(live_project: live_google.Project | None, request: pytest.FixtureRequest) -> str:
    """The same in the lab, with queues."""
    if live_project:
        pytest.skip("Pub/Sub is not tried in a project of Google Cloud yet")
    place = request.getfixturevalue("google_place")
    return _with_queues(place, request.getfixturevalue("pubsub"))


@pytest.fixture(scope="class")
def shared_place(
    firestore: Emulator, pubsub: Emulator, secret_manager: SecretManager, _storage: Storage
) -> str:
    """The same for all tests of a class."""
    return _with_queues(_lab(firestore, secret_manager, _storage), pubsub)


def _with_queues(place: str, pubsub: Emulator) -> str:
    stored = json.loads(place)
    stored["emulators"]["PUBSUB_EMULATOR_HOST"] = pubsub.address
    return json.dumps(stored)


@pytest.fixture(scope="session")
def gke() -> Iterator[Gke]:
    """GKE, which knows whose its tokens are."""
    with Gke() as served:
        yield served


@pytest.fixture(scope="session")
def _gke_cluster(
    gke: Gke, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Cluster:
    return control_plane.start_cluster(
        "gke", extra_args=gke.trusted_by(tmp_path_factory.mktemp("gke"))
    )


@pytest.fixture
def gke_cluster(_gke_cluster: Cluster) -> Cluster:
    """A cluster whose API server asks GKE who has sent a token, as after boot."""
    return as_after_boot(_gke_cluster)
