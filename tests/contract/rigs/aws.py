"""AWS, as a moto server on this machine has it, in real time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import ClassVar
from uuid import uuid4

from bellhop.adapters.aws import secrets
from bellhop.adapters.aws.parameters import ParameterSecrets
from bellhop.adapters.aws.secrets import ManagedSecrets
from bellhop.adapters.aws.services import Services
from bellhop.adapters.aws.store import DynamoStore, S3Blobs
from bellhop.adapters.local.clock import SystemClock
from bellhop.ports.clock import Clock
from bellhop.ports.store import Secrets
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY

LIVE = "live:"
"""Begins an endpoint that is a region of the real AWS, with the credentials of the environment."""


class Rig:
    """An installation of its own on the moto server, or in the account, that `place` names.

    Another process is given the place of this one, `ENDPOINT/INSTALLATION`, and makes nothing.
    """

    ports: ClassVar[frozenset[str]] = frozenset({"store", "secrets", "blobs"})
    courtesies: ClassVar[frozenset[str]] = frozenset()
    secret_limit: ClassVar[int] = secrets.LIMIT
    unit: ClassVar[timedelta] = timedelta(seconds=1)
    where: ClassVar[str] = "moto_place"

    def __init__(self, place: str) -> None:
        endpoint, _, self.name = place.rpartition("/")
        self.clock: Clock = SystemClock()
        self.region = endpoint.removeprefix(LIVE) if endpoint.startswith(LIVE) else REGION
        self.services = (
            Services(region=self.region)
            if endpoint.startswith(LIVE)
            else Services(region=REGION, endpoint=endpoint, keys=(ACCESS_KEY, SECRET_KEY))
        )
        self.place = place

    def store(self) -> DynamoStore:
        return DynamoStore(self.services, self.name, clock=self.clock)

    def secrets(self) -> Secrets:
        return ManagedSecrets(self.services, self.name)

    def parameters(self) -> ParameterSecrets:
        return ParameterSecrets(self.services, f"/bellhop/{self.name}")

    def blobs(self) -> S3Blobs:
        return S3Blobs(self.services, self.name)

    def now(self) -> datetime:
        """Return what time it is for the provider."""
        return self.clock.now()

    def span(self, units: float) -> timedelta:
        """Return how long so many units are."""
        return units * self.unit

    def pass_time(self, units: float) -> None:
        """Wait: nobody moves AWS' clock."""
        time.sleep(self.span(units).total_seconds())

    def close(self) -> None:
        self.services.close()


def install(endpoint: str, prefix: str = "bellhop") -> str:
    """Make an installation of its own, as Terraform would; return its place."""
    rig = Rig(f"{endpoint}/{prefix}-{uuid4().hex[:12]}")
    tables = rig.services.client("dynamodb")
    tables.create_table(
        TableName=rig.name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "partition", "KeyType": "HASH"},
            {"AttributeName": "sort", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("partition", "sort")
        ],
    )
    where = {"CreateBucketConfiguration": {"LocationConstraint": rig.region}}
    # The first of all regions has no name here.
    rig.services.client("s3").create_bucket(
        Bucket=rig.name, **({} if rig.region == "us-east-1" else where)
    )
    tables.get_waiter("table_exists").wait(TableName=rig.name)
    rig.close()
    return rig.place
