"""Secrets in Parameter Store where the contract cannot look: names, tiers, sizes, requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellhop.adapters.aws.parameters import LIMIT, ParameterSecrets
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.aws.services import Services
from bellhop.errors import InvalidError, TooLargeError
from tests.aws_fixtures import Asked
from tests.contract.rigs.aws import Rig
from tests.lab.moto import Moto

pytestmark = pytest.mark.usefixtures("parameters_place")

NAME = "kubeconfig/ns/name"


@pytest.fixture
def secrets(aws: Rig, hurried: Services) -> ParameterSecrets:
    return ParameterSecrets(hurried, f"/bellhop/{aws.name}")


def stored(aws: Rig, name: str = NAME) -> dict[str, Any]:
    """Return a parameter as AWS describes it, with its value."""
    path = f"/bellhop/{aws.name}/{name}"
    client = aws.services.client("ssm")
    filters = [{"Key": "Name", "Option": "Equals", "Values": [path]}]
    [described] = client.describe_parameters(ParameterFilters=filters)["Parameters"]
    value = client.get_parameter(Name=path, WithDecryption=True)["Parameter"]["Value"]
    return {**described, "Value": value}


def test_each_operation_is_one_request(secrets: ParameterSecrets, asked: Asked) -> None:
    """An account has 40 of them a second."""
    secrets.put(NAME, b"one")
    secrets.put(NAME, b"two")
    secrets.read(NAME)
    secrets.delete(NAME)

    assert asked() == {"ssm:PutParameter": 2, "ssm:GetParameter": 1, "ssm:DeleteParameter": 1}


@pytest.mark.parametrize("name", ["a b", "a_b", "a_5Fb", "a:1", "ä/😀", "a\nb", "a=b", "%41", "A"])
def test_takes_names_that_parameter_store_refuses(secrets: ParameterSecrets, name: str) -> None:
    """Any name is read and listed as it was written, and is no other's."""
    secrets.put(name, b"mine")
    secrets.put(name + "x", b"another")

    assert secrets.read(name) == b"mine"
    assert list(secrets.names(name)) == [name, name + "x"]
    secrets.delete(name)
    assert list(secrets.names()) == [name + "x"]


def test_an_installation_lists_its_own_secrets_on_all_pages(
    aws: Rig, hurried: Services, secrets: ParameterSecrets
) -> None:
    """Parameter Store lists ten at a time, and another installation may have a longer name."""
    ParameterSecrets(hurried, f"/bellhop/{aws.name}2").put("theirs", b"x")
    names = [f"kubeconfig/ns/{number:02}" for number in range(21)]
    for name in names:
        secrets.put(name, b"x")

    assert list(secrets.names()) == names


def test_a_write_that_meets_another_is_repeated(moto: Moto, secrets: ParameterSecrets) -> None:
    """Parameter Store refuses one of two writes at once."""
    moto.fail("ssm:PutParameter", status=400, code="TooManyUpdates", times=2)

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"


def test_a_write_whose_answer_was_lost_is_done(moto: Moto, secrets: ParameterSecrets) -> None:
    """The second attempt writes the same value over it."""
    moto.fail("ssm:PutParameter", served=True)

    secrets.put(NAME, b"two")

    assert secrets.read(NAME) == b"two"


def test_a_secret_is_sealed_with_the_given_key_and_has_the_cheapest_tier(
    aws: Rig, hurried: Services
) -> None:
    """Parameter Store selects the standard tier where the value fits into it."""
    key = "arn:aws:kms:eu-west-1:123456789012:key/7d4c1a9e-52aa-4a39-9f0c-000000000000"
    ParameterSecrets(hurried, f"/bellhop/{aws.name}", key=key).put(NAME, b"one")

    found = stored(aws)
    assert (found["Type"], found["KeyId"]) == ("SecureString", key)
    assert found["Tier"] == "Intelligent-Tiering"  # Moto keeps what was asked for.


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(b'{"kind": "Config"}', '{"kind": "Config"}', id="a kubeconfig"),
        pytest.param(b"\xff", "base64:/w==", id="bytes"),
        pytest.param(b" one\n", "base64:IG9uZQo=", id="space around"),
        pytest.param(b"{{ssm:other}}", "base64:e3tzc206b3RoZXJ9fQ==", id="the name of another"),
        pytest.param(b"base64:x", "base64:YmFzZTY0Ong=", id="the mark itself"),
    ],
)
def test_text_is_stored_as_it_is(
    aws: Rig, secrets: ParameterSecrets, value: bytes, text: str
) -> None:
    """`aws ssm get-parameter` shows it, and base64 would take a third more of the small limit."""
    secrets.put(NAME, value)

    assert stored(aws)["Value"] == text
    assert secrets.read(NAME) == value


def test_a_copied_secret_is_read(aws: Rig, hurried: Services, secrets: ParameterSecrets) -> None:
    """A shell moves kubeconfigs from Secrets Manager: a slash and a word come before the name."""
    value = json.dumps({"kind": "Config", "clusters": [{"name": "ä"}]}).encode()
    ManagedSecrets(hurried, aws.name).put(NAME, value)
    client = hurried.client
    filters = [{"Key": "name", "Values": [f"{aws.name}/"]}]
    [listed] = client("secretsmanager").list_secrets(Filters=filters)["SecretList"]
    name = listed["Name"]
    found = client("secretsmanager").get_secret_value(SecretId=name)["SecretBinary"]
    client("ssm").put_parameter(
        Name=f"/bellhop/{name}", Value=found.decode(), Type="SecureString", Overwrite=True
    )

    assert secrets.read(NAME) == value
    assert list(secrets.names()) == [NAME]


def test_a_kubeconfig_that_is_too_large_is_refused_with_what_to_do(
    secrets: ParameterSecrets, asked: Asked
) -> None:
    """The sentence names the cluster, both sizes and both ways out, and no value."""
    value = json.dumps({"certificate": "x" * LIMIT}).encode()
    with pytest.raises(TooLargeError) as caught:
        secrets.put(NAME, value)

    assert str(caught.value) == (
        f"cannot write the secret 'kubeconfig/ns/name': its {len(value)} characters exceed"
        " Parameter Store's 8192; register the cluster with a token in place of certificates, or"
        " apply the module with kubeconfig_store = 'secrets-manager'"
    )
    assert asked() == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(NAME, b"", id="nothing"), pytest.param("n" * 900, b"x", id="a long name")],
)
def test_refuses_before_it_asks(
    secrets: ParameterSecrets, asked: Asked, name: str, value: bytes
) -> None:
    """What AWS would refuse is not sent."""
    with pytest.raises(InvalidError):
        secrets.put(name, value)

    assert asked() == {}
