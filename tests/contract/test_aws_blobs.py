"""Blobs in S3 where the contract cannot look: requests, lost answers, a missing bucket."""

from __future__ import annotations

import pytest

from bellhop.adapters.aws.services import Services
from bellhop.adapters.aws.store import S3Blobs
from bellhop.errors import TemporaryError, UnreachableError
from tests.aws_fixtures import Asked
from tests.contract.rigs.aws import Rig
from tests.lab.moto import Moto


@pytest.fixture
def blobs(aws: Rig, hurried: Services) -> S3Blobs:
    return S3Blobs(hurried, aws.name)


def test_each_operation_is_one_request(blobs: S3Blobs, asked: Asked) -> None:
    """Each is billed."""
    blobs.put("one", b"1")
    blobs.get("one")
    blobs.delete("one")

    assert asked() == {"s3:PUT": 1, "s3:GET": 1, "s3:DELETE": 1}


@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
def test_waits_out_a_failure(moto: Moto, blobs: S3Blobs, method: str) -> None:
    """A lost answer, and one that says that AWS failed, cost time and nothing else."""
    blobs.put("one", b"1")
    moto.fail(f"s3:{method}", served=True)
    moto.fail(f"s3:{method}", status=503, code="SlowDown")

    blobs.put("one", b"2")
    assert blobs.get("one") == b"2"
    blobs.delete("one")


def test_a_lasting_failure_is_raised(moto: Moto, blobs: S3Blobs, asked: Asked) -> None:
    """Nothing of the value is."""
    moto.fail("s3:PUT", times=99)

    with pytest.raises(UnreachableError, match="cannot write the blob 'one'") as caught:
        blobs.put("one", b"a value")

    assert "value" not in str(caught.value)
    assert asked() == {"s3:PUT": 5}


def test_a_bucket_that_is_not_there_is_no_missing_blob(hurried: Services) -> None:
    """A blob that is missing is lost for good; this is put right by Terraform."""
    with pytest.raises(TemporaryError, match="Terraform"):
        S3Blobs(hurried, "no-such-bucket").get("one")
