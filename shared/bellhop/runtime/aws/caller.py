"""An installation on AWS in the hands of a person, who calls it with the rights that are theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from bellhop.adapters.aws.eks import EksClusters
from bellhop.adapters.aws.errors import ABSENT
from bellhop.adapters.aws.services import Services
from bellhop.errors import MissingError, TemporaryError
from bellhop.installation.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.aws.installation import installation
from bellhop.runtime.aws.resources import open_resources
from bellhop.runtime.cloud.environment import reach_where

VARIABLES = {
    "BELLHOP_TABLE": "table",
    "BELLHOP_BUCKET": "bucket",
    "BELLHOP_SECRETS": "secrets",
    "BELLHOP_KEY_SECRET": "key_secret",
    "BELLHOP_INGEST_KEY_SECRET": "ingest_key_secret",
    "BELLHOP_INGEST_URL": "ingest_url",
    "BELLHOP_KMS_KEY": "kms_key",
}
"""What functions read from their environment, by the name that Terraform's output has for it."""


class Called(Struct, frozen=True):
    """An opened installation, and the connections to it."""

    installation: Installation
    services: Services

    @property
    def eks(self) -> EksClusters:
        """The account's EKS clusters."""
        return EksClusters(self.services)

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a block without a snapshot: DynamoDB has none that spans a table."""
        return nullcontext()

    def close(self) -> None:
        """Let go of all connections."""
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
    """Open the installation of a place that Terraform's output describes.

    Settings are those of the caller's environment. What the ledger is told is not logged.

    Raises:
        MissingError: the caller's account has no such installation in that region.
        TemporaryError: AWS does not answer, or does not accept the caller.
    """
    services = services_of(place)
    given = {variable: str(place.get(key, "")) for variable, key in VARIABLES.items()}
    given["BELLHOP_QUEUES"] = json.dumps(place["queues"])
    reach = reach_where(place.get("endpoint") or environment.get("AWS_ENDPOINT_URL", ""))
    try:
        here = open_resources({**environment, **given}, services, Log(), reach=reach, tells=False)
    except TemporaryError as error:
        services.close()
        if error.context.get("reason") not in ABSENT:
            raise
        raise MissingError(
            f"cannot use context '{name}': the AWS account that was called has no secret"
            f" '{place['key_secret']}' in {place['region']}; see whether the credentials"
            " (`aws sts get-caller-identity`) and the region are those of the installation"
        ) from error
    return Called(installation(here), services)
