"""Secrets in Secrets Manager where the contract cannot look: names, deletions, requests."""

from __future__ import annotations

import pytest

from bellhop.adapters.aws.secrets import LIMIT, ManagedSecrets
from bellhop.adapters.aws.services import Services
from bellhop.errors import InvalidError, MissingError, TemporaryError, TooLargeError
from tests.aws_fixtures import Asked
from tests.contract.rigs.aws import Rig
from tests.lab.moto import Moto

NAME = "kubeconfig/ns/name"


@pytest.fixture
def secrets(aws: Rig, hurried: Services) -> ManagedSecrets:
    return ManagedSecrets(hurried, aws.name)


def test_reading_and_writing_over_is_one_request(secrets: ManagedSecrets, asked: Asked) -> None:
    """Each is billed; only the first write of a secret is two."""
    secrets.put(NAME, b"one")
    assert asked() == {"secretsmanager:PutSecretValue": 1, "secretsmanager:CreateSecret": 1}

    secrets.put(NAME, b"two")
    secrets.read(NAME)
    assert asked() == {"secretsmanager:PutSecretValue": 1, "secretsmanager:GetSecretValue": 1}


@pytest.mark.parametrize("name", ["a b", "a=b", "a=3Db", "ä/😀", "a\nb", "a!b", "%41", "A"])
def test_takes_names_that_aws_does_not(secrets: ManagedSecrets, name: str) -> None:
    """Any name is read and listed as it was written, and is no other's."""
    secrets.put(name, b"mine")
    secrets.put(name + "x", b"another")

    assert secrets.read(name) == b"mine"
    assert list(secrets.names(name)) == [name, name + "x"]
    secrets.delete(name)
    assert list(secrets.names()) == [name + "x"]


def test_an_installation_sees_only_its_own(aws: Rig, hurried: Services) -> None:
    """The name of one may begin with that of another."""
    ManagedSecrets(hurried, aws.name).put(NAME, b"mine")
    other = ManagedSecrets(hurried, f"{aws.name}2")
    other.put("theirs", b"x")

    assert list(ManagedSecrets(hurried, aws.name).names()) == [NAME]
    assert list(other.names()) == ["theirs"]


def test_lists_more_than_a_page(secrets: ManagedSecrets) -> None:
    """Secrets Manager lists a hundred at a time."""
    names = [f"kubeconfig/ns/{number:03}" for number in range(101)]
    for name in names:
        secrets.put(name, b"x")

    assert list(secrets.names()) == names


def test_a_secret_that_somebody_deletes_by_hand_is_missing_and_can_be_written(
    aws: Rig, hurried: Services, secrets: ManagedSecrets
) -> None:
    """The console deletes with a time of grace, in which AWS takes neither reads nor writes."""
    secrets.put(NAME, b"one")
    place = {"SecretId": f"{aws.name}/{NAME}"}
    hurried.client("secretsmanager").delete_secret(**place, RecoveryWindowInDays=30)
    with pytest.raises(MissingError):
        secrets.read(NAME)

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"


@pytest.mark.parametrize("code", ["InvalidRequestException", "ResourceExistsException"])
def test_waits_for_a_name_that_is_still_held(
    moto: Moto, secrets: ManagedSecrets, code: str
) -> None:
    """A deletion takes AWS some seconds; another writer may be faster than we are."""
    moto.fail("secretsmanager:CreateSecret", status=400, code=code, times=3)

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"


def test_does_not_wait_for_a_name_for_ever(moto: Moto, secrets: ManagedSecrets) -> None:
    """The error says that it may pass, and not what was to be written."""
    moto.fail("secretsmanager:CreateSecret", status=400, code="InvalidRequestException", times=99)

    with pytest.raises(TemporaryError, match="still being deleted") as caught:
        secrets.put(NAME, b"a value")

    assert "value" not in str(caught.value)


@pytest.mark.parametrize("operation", ["PutSecretValue", "CreateSecret"])
def test_a_write_whose_answer_was_lost_is_done(
    moto: Moto, secrets: ManagedSecrets, operation: str
) -> None:
    """It is repeated under the token that it had."""
    if operation == "PutSecretValue":
        secrets.put(NAME, b"one")
    moto.fail(f"secretsmanager:{operation}", served=True)

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"


def test_is_sealed_with_the_key_that_it_was_given(aws: Rig, hurried: Services) -> None:
    """The installation's key, and not the account's."""
    key = "arn:aws:kms:eu-west-1:123456789012:key/7d4c1a9e-52aa-4a39-9f0c-000000000000"
    ManagedSecrets(hurried, aws.name, key=key).put(NAME, b"one")

    described = hurried.client("secretsmanager").describe_secret(SecretId=f"{aws.name}/{NAME}")
    assert described["KmsKeyId"] == key


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        pytest.param(NAME, b"", InvalidError, id="nothing"),
        pytest.param(NAME, b"x" * (LIMIT + 1), TooLargeError, id="too much"),
        pytest.param("n" * 600, b"x", InvalidError, id="a long name"),
    ],
)
def test_refuses_before_it_asks(
    secrets: ManagedSecrets, asked: Asked, name: str, value: bytes, error: type[Exception]
) -> None:
    """What AWS would refuse is not sent."""
    with pytest.raises(error):
        secrets.put(name, value)

    assert asked() == {}
