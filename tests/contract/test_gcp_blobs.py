"""Blobs in Cloud Storage where the contract cannot look: requests, lost answers, a lost bucket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.services import Services
from bellhop.errors import MissingError, TemporaryError, ThrottledError, UnreachableError
from tests.lab.google_storage import Storage


@pytest.fixture
def hurried(storage: Storage, google_project: str) -> Iterator[Services]:
    """Services that rest no time between two tries."""
    emulators = {"STORAGE_EMULATOR_HOST": storage.address}
    services = Services(google_project, emulators=emulators, sleep=lambda _: None)
    yield services
    services.close()


@pytest.fixture
def blobs(storage: Storage, hurried: Services, google_project: str) -> CloudBlobs:
    storage.make(google_project)
    storage.requests()
    return CloudBlobs(hurried, google_project)


def test_each_operation_is_one_request(storage: Storage, blobs: CloudBlobs) -> None:
    """Each is billed; what is missing costs a look whether the bucket is there."""
    blobs.put("one", b"1")
    blobs.get("one")
    blobs.delete("one")
    assert storage.requests() == {"POST": 1, "GET": 1, "DELETE": 1}

    with pytest.raises(MissingError):
        blobs.get("one")
    assert storage.requests() == {"GET": 2}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_waits_out_a_failure(storage: Storage, blobs: CloudBlobs, method: str) -> None:
    """A lost answer, and one that says that Google failed, cost time and nothing else."""
    blobs.put("one", b"1")
    storage.fail(method, served=True)
    for status in (429, 500, 503):
        storage.fail(method, status)

    blobs.put("one", b"2")
    assert blobs.get("one") == b"2"
    blobs.delete("one")
    with pytest.raises(MissingError):
        blobs.get("one")


def test_a_lasting_failure_is_raised(storage: Storage, blobs: CloudBlobs) -> None:
    """Nothing of the value is."""
    storage.fail("POST", times=5)
    with pytest.raises(UnreachableError, match="cannot write the blob 'one'") as caught:
        blobs.put("one", b"a value")
    assert "value" not in str(caught.value)

    storage.fail("POST", 429, times=5)
    with pytest.raises(ThrottledError):
        blobs.put("one", b"a value")
    assert storage.requests() == {"POST": 10}


@pytest.mark.parametrize("status", [401, 403, 412, 307])
def test_what_somebody_has_to_put_right_is_not_tried_again(
    storage: Storage, blobs: CloudBlobs, status: int
) -> None:
    """And loses no message."""
    storage.fail("GET", status, times=2)

    with pytest.raises(TemporaryError):
        blobs.get("one")

    assert storage.requests() == {"GET": 1}


def test_a_bucket_that_is_not_there_is_no_missing_blob(hurried: Services) -> None:
    """A blob that is missing is lost for good; this is put right by Terraform."""
    blobs = CloudBlobs(hurried, "no-such-bucket")

    with pytest.raises(TemporaryError, match="Terraform"):
        blobs.get("one")
    with pytest.raises(TemporaryError, match="Terraform"):
        blobs.put("one", b"1")
