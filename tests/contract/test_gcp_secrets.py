"""Secrets in Secret Manager where the contract cannot look: versions, deaths, deletions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from bellhop.adapters.gcp.secrets import COLLECTION, LIMIT, VersionedSecrets
from bellhop.adapters.gcp.services import Services
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.adapters.local.clock import SystemClock
from bellhop.errors import BellhopError, InvalidError, MissingError, TooLargeError, UnreachableError
from bellhop.ports.store import Item
from tests.lab.google_front import Front
from tests.lab.google_secrets import LATE_SECONDS, SecretManager

NAME = "kubeconfig/ns/name"


@pytest.fixture
def manager(secret_manager: SecretManager) -> Iterator[Front]:
    """The session's Secret Manager, which counts its requests, and fails on demand."""
    with Front(secret_manager.address) as before:
        yield before


@pytest.fixture
def services(front: Front, manager: Front, google_project: str) -> Iterator[Services]:
    """Services that rest no time between two tries."""
    emulators = {
        "FIRESTORE_EMULATOR_HOST": front.address,
        "SECRET_MANAGER_EMULATOR_HOST": manager.address,
    }
    found = Services(google_project, emulators=emulators, sleep=lambda _: None)
    yield found
    found.close()


@pytest.fixture
def secrets(services: Services) -> VersionedSecrets:
    return VersionedSecrets(services, "bellhop", clock=SystemClock())


Alive = Callable[[], list[list[int]]]


@pytest.fixture
def alive(secret_manager: SecretManager, google_project: str) -> Alive:
    """Return for each secret which versions are not destroyed."""
    return lambda: sorted(secret_manager.alive(google_project).values())


SEALED = {"customer_managed_encryption": {"kms_key_name": "projects/p/…/cryptoKeys/k"}}


@pytest.mark.parametrize(
    ("region", "key", "kept"),
    [
        pytest.param("", "", {"automatic": {}}, id="anywhere"),
        pytest.param(
            "europe-west1",
            "",
            {"user_managed": {"replicas": [{"location": "europe-west1"}]}},
            id="one region",
        ),
        pytest.param(
            "europe-west1",
            "projects/p/…/cryptoKeys/k",
            {"user_managed": {"replicas": [{"location": "europe-west1", **SEALED}]}},
            id="sealed by a key",
        ),
    ],
)
def test_secrets_lie_where_they_are_to(
    services: Services,
    secret_manager: SecretManager,
    google_project: str,
    region: str,
    key: str,
    kept: dict[str, Any],
) -> None:
    """In one region, under a key of one's own, or wherever Google keeps them."""
    secrets = VersionedSecrets(services, "bellhop", clock=SystemClock(), region=region, key=key)
    secrets.put(NAME, b"one")

    assert secret_manager.kept(google_project) == [kept]
    assert secrets.read(NAME) == b"one"


def test_reading_is_one_request_of_each_service(
    front: Front, manager: Front, secrets: VersionedSecrets
) -> None:
    """Each is billed; only writing is more."""
    secrets.put(NAME, b"one")
    assert front.requests() == {"BatchGetDocuments": 1, "Commit": 2}
    assert manager.requests() == {"CreateSecret": 1, "AddSecretVersion": 1}

    secrets.put(NAME, b"two")
    assert front.requests() == {"BatchGetDocuments": 1, "Commit": 1}
    assert manager.requests() == {
        "AddSecretVersion": 1,
        "ListSecretVersions": 1,
        "DestroySecretVersion": 1,
    }

    secrets.read(NAME)
    assert front.requests() == {"BatchGetDocuments": 1}
    assert manager.requests() == {"AccessSecretVersion": 1}


def test_older_versions_are_destroyed(secrets: VersionedSecrets, alive: Alive) -> None:
    """Nobody can read, and nobody pays for, what was written over."""
    for number in range(5):
        secrets.put(NAME, b"%d" % number)

    assert alive() == [[5]]
    assert secrets.read(NAME) == b"4"


def test_is_found_in_the_console(
    secrets: VersionedSecrets, secret_manager: SecretManager, google_project: str
) -> None:
    """Its id begins with the installation's prefix, and says what it is."""
    secrets.put("kubeconfig/prod/eu.1", b"x")
    secrets.put("kubeconfig/" + "n" * 63 + "/" + "c" * 253, b"x")

    ids = sorted(secret_manager.alive(google_project), key=len)
    assert ids[0].startswith("bellhop_kubeconfig-prod-eu-1_")
    assert len(ids[1]) == 255


@pytest.mark.parametrize("name", ["a b", "ä/😀", "a\nb", "%41", "A", "a" * 1000])
def test_takes_names_that_secret_manager_does_not(secrets: VersionedSecrets, name: str) -> None:
    """Any name is read and listed as it was written, and is no other's."""
    secrets.put(name, b"mine")
    secrets.put(name + "x", b"another")

    assert secrets.read(name) == b"mine"
    assert list(secrets.names(name)) == [name, name + "x"]
    secrets.delete(name)
    assert list(secrets.names()) == [name + "x"]


def test_another_life_is_another_secret(secrets: VersionedSecrets, alive: Alive) -> None:
    """A cluster that is registered again after its deregistration finds nothing of before."""
    secrets.put(NAME, b"one")
    secrets.delete(NAME)
    assert alive() == []

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"
    assert alive() == [[1]]


STEPS = [
    *(("firestore", "Commit"), ("secrets", "CreateSecret"), ("secrets", "AddSecretVersion")),
    *(("secrets", "ListSecretVersions"), ("secrets", "DestroySecretVersion")),
]


@pytest.mark.parametrize("served", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize(("whose", "step"), STEPS, ids=str)
def test_a_writer_who_dies_leaves_nothing_that_is_not_found(
    front: Front,
    manager: Front,
    secrets: VersionedSecrets,
    alive: Alive,
    whose: str,
    step: str,
    *,
    again: bool,
    served: bool,
) -> None:
    """Whatever step is his last: what is read is whole, and the next write tidies up."""
    if again:
        secrets.put(NAME, b"zero")
    dying = front if whose == "firestore" else manager
    dying.fail(step, served=served, times=5)
    with suppress(UnreachableError):
        secrets.put(NAME, b"one")
    dying.forgive()

    with suppress(MissingError):
        assert secrets.read(NAME) in {b"zero", b"one"}
    secrets.put(NAME, b"two")
    assert secrets.read(NAME) == b"two"
    time.sleep(1.2 * LATE_SECONDS)  # The list shows a version that was just added late.
    secrets.put(NAME, b"three")
    assert [len(each) for each in alive()] == [1]
    assert secrets.read(NAME) == b"three"


@pytest.mark.parametrize("step", ["DeleteSecret", "Commit"])
def test_a_deletion_that_was_cut_off_is_done_again(
    front: Front, manager: Front, secrets: VersionedSecrets, alive: Alive, step: str
) -> None:
    """The value goes first: a name that is left says that there is something to delete."""
    secrets.put(NAME, b"one")
    for each in (front, manager):
        each.fail(step, times=5)
    with pytest.raises(UnreachableError):
        secrets.delete(NAME)
    for each in (front, manager):
        each.forgive()

    assert list(secrets.names()) == [NAME]
    secrets.delete(NAME)
    assert (list(secrets.names()), alive()) == ([], [])


@pytest.mark.parametrize("operation", ["CreateSecret", "AddSecretVersion", "DestroySecretVersion"])
def test_a_write_whose_answer_was_lost_is_done(
    manager: Front, secrets: VersionedSecrets, alive: Alive, operation: str
) -> None:
    """It is repeated; a version that came twice is destroyed with the older ones."""
    if operation == "DestroySecretVersion":
        secrets.put(NAME, b"zero")
    manager.fail(operation, served=True)
    secrets.put(NAME, b"one")
    assert secrets.read(NAME) == b"one"
    time.sleep(1.2 * LATE_SECONDS)  # The list shows a version that was just added late.

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"
    assert [len(each) for each in alive()] == [1]


def test_a_restored_store_names_a_destroyed_version(
    services: Services, secrets: VersionedSecrets
) -> None:
    """The newest is what there is."""
    pointers = FirestoreStore(services, clock=SystemClock(), collection=COLLECTION)
    secrets.put(NAME, b"one")
    backup = pointers.get("secret", NAME)
    assert backup
    secrets.put(NAME, b"two")
    time.sleep(1.2 * LATE_SECONDS)  # The list shows the newest version late.
    pointers.put(Item("secret", NAME, backup.value))

    assert secrets.read(NAME) == b"two"
    secrets.put(NAME, b"three")
    assert secrets.read(NAME) == b"three"


def test_what_somebody_deletes_by_hand_is_missing_and_can_be_written(
    services: Services,
    secrets: VersionedSecrets,
    secret_manager: SecretManager,
    alive: Alive,
    google_project: str,
) -> None:
    """In the console, with all its versions."""
    secrets.put(NAME, b"one")
    (place,) = secret_manager.alive(google_project)
    name = f"projects/{google_project}/secrets/{place}"
    services.call("secretmanager", "delete_secret", {"name": name}, doing="delete by hand")
    with pytest.raises(MissingError, match=NAME):
        secrets.read(NAME)

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"
    assert alive() == [[1]]


def test_writers_and_deleters_at_once_end_with_one_or_none(
    secrets: VersionedSecrets, alive: Alive
) -> None:
    """The last writer decides: either the name has one value, or nothing of it is left."""

    def act(number: int) -> None:
        for turn in range(6):
            with suppress(BellhopError):
                if (number + turn) % 3:
                    secrets.put(NAME, b"%d %d" % (number, turn))
                else:
                    secrets.delete(NAME)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    if list(secrets.names()):
        assert secrets.read(NAME)
    secrets.put(NAME, b"last")
    assert secrets.read(NAME) == b"last"
    secrets.delete(NAME)
    assert (list(secrets.names()), alive()) == ([], [])


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        pytest.param(NAME, b"", InvalidError, id="nothing"),
        pytest.param(NAME, b"x" * (LIMIT + 1), TooLargeError, id="too much"),
        pytest.param("n" * 1025, b"x", TooLargeError, id="a long name"),
        pytest.param("", b"x", InvalidError, id="no name"),
    ],
)
def test_refuses_before_it_asks(
    front: Front,
    manager: Front,
    secrets: VersionedSecrets,
    name: str,
    value: bytes,
    error: type[Exception],
) -> None:
    """What Google would refuse is not sent."""
    with pytest.raises(error):
        secrets.put(name, value)

    assert (front.requests(), manager.requests()) == ({}, {})


def test_no_error_contains_a_value(manager: Front, secrets: VersionedSecrets) -> None:
    """Whatever Google says of it."""
    manager.fail("AddSecretVersion", "INVALID_ARGUMENT")

    with pytest.raises(InvalidError, match=f"cannot write the secret '{NAME}'") as caught:
        secrets.put(NAME, b"a value")

    assert "value" not in str(caught.value)
