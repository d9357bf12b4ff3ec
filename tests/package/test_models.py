"""What is short of AWS' descriptions of its services says all that is called by."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import botocore
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.loaders import Loader

from infra.package.models import shortened
from infra.package.parts import SERVICES

SDK = Path(botocore.__file__).parent
LICENCE = "botocore-1.0.dist-info/LICENSE.txt"
REGIONS = ["eu-west-1", "us-east-1", "us-gov-west-1", "cn-north-1", "ap-southeast-7"]


CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "dynamodb": ("get_item", {"TableName": "records", "Key": {"partition": {"S": "x"}}}),
    "eks": ("describe_cluster", {"name": "east"}),
    "s3": ("put_object", {"Bucket": "blobs", "Key": "a", "Body": b"x", "IfNoneMatch": "*"}),
    "secretsmanager": ("get_secret_value", {"SecretId": "a"}),
    "sqs": ("send_message", {"QueueUrl": "http://127.0.0.1:1/inbox", "MessageBody": "x"}),
    "sts": ("assume_role", {"RoleArn": f"arn:aws:iam::{1:012}:role/a", "RoleSessionName": "ab"}),
}


def described() -> dict[str, bytes]:
    """Read what the SDK knows of the services that are called, and of all together."""
    files = [*SDK.glob("data/*.json")]
    for service in SERVICES:
        files += SDK.glob(f"data/{service}/*/*.json*")
    return {str(each.relative_to(SDK.parent)): each.read_bytes() for each in files}


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shortened ones alone."""
    folder = tmp_path_factory.mktemp("short")
    for place, content in shortened(described()).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content)
    return folder / "botocore" / "data"


def length(files: Mapping[str, bytes]) -> int:
    """Add up what is read of files."""
    packed = [each for place, each in files.items() if place.endswith(".gz")]
    plain = [each for place, each in files.items() if not place.endswith(".gz")]
    return sum(len(each) for each in [*plain, *map(gzip.decompress, packed)])


def client(service: str, region: str, data: Path | None = None, **more: Any) -> Any:
    """Make a client by the SDK's own descriptions, or by those of a folder alone."""
    session = botocore.session.Session()
    if data:
        loader = Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
        session.register_component("data_loader", loader)
    session.set_credentials("key", "secret")
    return session.create_client(service, region_name=region, **more)


def shape(value: Any, seen: frozenset[str] = frozenset()) -> Any:
    """Write out a shape as deep as it goes: what a request or an answer is made of."""
    if value is None or value.name in seen:
        return value and value.name
    within = seen | {value.name}
    parts = dict(getattr(value, "members", {}))
    parts |= {
        name: getattr(value, name) for name in ("member", "key", "value") if hasattr(value, name)
    }
    said = {key: each for key, each in value.metadata.items() if key != "documentation"}
    return [
        *(value.name, value.type_name, dict(value.serialization), said),
        {name: shape(each, within) for name, each in parts.items()},
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_is_called_as_before(service: str, short: Path) -> None:
    """Operations, what they take and answer, and their errors are those that AWS describes."""
    ours, theirs = (client(service, "eu-west-1", data).meta.service_model for data in (short, None))

    assert ours.operation_names == theirs.operation_names
    assert [each.name for each in ours.client_context_parameters] == [
        each.name for each in theirs.client_context_parameters
    ]
    for name in theirs.operation_names:
        one, other = ours.operation_model(name), theirs.operation_model(name)
        assert one.http == other.http
        assert shape(one.input_shape) == shape(other.input_shape)
        assert shape(one.output_shape) == shape(other.output_shape)
        assert [each.name for each in one.error_shapes] == [
            each.name for each in other.error_shapes
        ]


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("service", SERVICES)
def test_each_service_is_found_where_it_was(service: str, region: str, short: Path) -> None:
    """Addresses and the regions that requests are signed for are the same in every partition."""
    ours, theirs = client(service, region, short), client(service, region)

    assert ours.meta.endpoint_url == theirs.meta.endpoint_url
    assert ours._request_signer._signing_name == theirs._request_signer._signing_name
    assert ours._request_signer._region_name == theirs._request_signer._region_name


@pytest.mark.parametrize("service", SERVICES)
def test_a_call_gets_as_far_as_before(service: str, short: Path) -> None:
    """All that the SDK asks of the descriptions before it sends a request is there."""
    operation, request = CALLS[service]
    nowhere = {
        "endpoint_url": "http://127.0.0.1:1",
        "config": Config(retries={"total_max_attempts": 1}),
    }
    caller = client(service, "eu-west-1", short, **nowhere)

    with pytest.raises(EndpointConnectionError):
        getattr(caller, operation)(**request)


def test_they_are_a_quarter_as_long() -> None:
    """What a cold start reads of them is short."""
    files = described()
    lengths = [
        sum(
            len(gzip.decompress(each) if place.endswith(".gz") else each)
            for place, each in one.items()
        )
        for one in (shortened(files), files)
    ]

    assert lengths[0] < lengths[1] / 4


def test_changes_are_told_of_where_the_licence_is() -> None:
    """Whoever finds the licence finds what is not as it was; what is not AWS' is as it was."""
    files = {**described(), LICENCE: b"may be changed", "yaml/data.json": b"{ }"}
    found = shortened(files)

    assert b"endpoints.json tells of dynamodb" in found["botocore-1.0.dist-info/CHANGES"]
    assert found[LICENCE] == b"may be changed"
    assert found["yaml/data.json"] == b"{ }"
    assert shortened({"yaml/data.json": b"{ }"}) == {"yaml/data.json": b"{ }"}


def test_a_field_that_is_called_documentation_stays() -> None:
    """Only words are emptied."""
    model = {"documentation": "words", "members": {"documentation": {"shape": "Text"}}}
    place = "botocore/data/sqs/1/service-2.json"

    found = json.loads(shortened({place: json.dumps(model).encode()})[place])

    assert found == {**model, "documentation": ""}


def test_the_same_bytes_come_of_the_same_ones() -> None:
    """Packages are the same whenever they are built."""
    files = described()

    assert shortened(files) == shortened(files)
