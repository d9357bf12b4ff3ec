"""The whole installation on AWS: for a function, or called by a person with their own rights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.aws.eks import EksClusters
from bellhop.adapters.aws.errors import ABSENT
from bellhop.adapters.aws.services import Services
from bellhop.errors import MissingError, TemporaryError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.aws.access import access_of, secrets_of
from bellhop.runtime.aws.resources import Resources, open_resources
from bellhop.runtime.cloud.installation import whole
from bellhop.runtime.cloud.resources import reach_where


def installation(here: Resources) -> Installation:
    secrets = secrets_of(here)
    return whole(here, secrets, access_of(here, secrets))


VARIABLES = {
    "BELLHOP_TABLE": "table",
    "BELLHOP_BUCKET": "bucket",
    "BELLHOP_SECRETS": "secrets",
    "BELLHOP_KEY_SECRET": "key_secret",
    "BELLHOP_INGEST_KEY_SECRET": "ingest_key_secret",
    "BELLHOP_INGEST_URL": "ingest_url",
    "BELLHOP_KMS_KEY": "kms_key",
}
"""Variables of the functions' environment, and the outputs of Terraform with their values."""


class Called(Struct, frozen=True):
    """An opened installation, and the connections to it."""

    installation: Installation
    services: Services

    @property
    def eks(self) -> EksClusters:
        return EksClusters(self.services)

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a block without a snapshot: DynamoDB has none that spans a table."""
        return nullcontext()

    def close(self) -> None:
        self.services.close()


def services_of(place: Mapping[str, Any]) -> Services:
    """Make the services of a place; nothing is called."""
    return Services(
        region=place["region"],
        endpoint=place.get("endpoint", ""),
        profile=place.get("profile", ""),
        role=place.get("role_arn", ""),
    )


def call(place: Mapping[str, Any], environment: Mapping[str, str], *, name: str) -> Called:
    """Open the installation that Terraform's output describes.

    Settings are those of the caller's environment. Entries of the event log are not logged.

    Raises:
        MissingError: the caller's account has no such installation in that region.
        TemporaryError: AWS does not answer, or does not accept the caller.
    """
    services = services_of(place)
    given = {variable: str(place.get(key, "")) for variable, key in VARIABLES.items()}
    given["BELLHOP_QUEUES"] = json.dumps(place["queues"])
    reach = reach_where(place.get("endpoint") or environment.get("AWS_ENDPOINT_URL", ""))
    try:
        here = open_resources({**environment, **given}, services, Log(), reach=reach, logs=False)
    except TemporaryError as error:
        services.close()
        if error.context.get("reason") not in ABSENT:
            raise
        raise MissingError(
            f"cannot use context '{name}': the AWS account that was called has no secret"
            f" '{place['key_secret']}' in {place['region']}; see whether the credentials"
            " (`aws sts get-caller-identity`) and the region are those of the installation"
        ) from error
    return Called(replace(installation(here), identify=partial(identify, services)), services)


def identify(services: Services) -> str:
    """Return the ARN of the caller.

    Raises:
        BellhopError: AWS does not answer, or does not accept the caller.
    """
    answer = services.call("sts", "get_caller_identity", {}, doing="identify the caller")
    return str(answer["Arn"])
