"""The whole installation on Google Cloud: for a function, or for a person with their rights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.gcp.gke import GkeClusters
from bellhop.adapters.gcp.services import Services
from bellhop.errors import MissingError, TemporaryError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.cloud.installation import whole
from bellhop.runtime.cloud.resources import reach_where
from bellhop.runtime.gcp.access import access_of, secrets_of
from bellhop.runtime.gcp.resources import Resources, open_resources


def installation(here: Resources) -> Installation:
    secrets = secrets_of(here)
    return whole(here, secrets, access_of(here, secrets))


VARIABLES = {
    "BELLHOP_PROJECT": "project",
    "BELLHOP_DATABASE": "database",
    "BELLHOP_BUCKET": "bucket",
    "BELLHOP_SECRETS": "secrets",
    "BELLHOP_SECRET_REGION": "secret_region",
    "BELLHOP_KMS_KEY": "kms_key",
    "BELLHOP_KEY_SECRET": "key_secret",
    "BELLHOP_INGEST_KEY_SECRET": "ingest_key_secret",
    "BELLHOP_INGEST_URL": "ingest_url",
}
"""Variables of the functions' environment, and the outputs of Terraform with their values."""

_ABSENT = "NOT_FOUND"


class Called(Struct, frozen=True):
    """An opened installation, and the connections to it."""

    installation: Installation
    services: Services

    @property
    def gke(self) -> GkeClusters:
        return GkeClusters(self.services)

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a block without a snapshot: Firestore would need its time in each read."""
        return nullcontext()

    def close(self) -> None:
        self.services.close()


def services_of(place: Mapping[str, Any], environment: Mapping[str, str]) -> Services:
    """Make the services of a place; nothing is called."""
    return Services(place["project"], emulators=environment)


def call(place: Mapping[str, Any], environment: Mapping[str, str], *, name: str) -> Called:
    """Open the installation that Terraform's output describes.

    Settings are those of the caller's environment. Entries of the event log are not logged.

    Raises:
        MissingError: the project has no such installation.
        TemporaryError: Google does not answer, or does not accept the caller.
    """
    services = services_of(place, environment)
    given = {variable: str(place.get(key, "")) for variable, key in VARIABLES.items()}
    given["BELLHOP_TOPICS"] = json.dumps(place["topics"])
    # An emulator's address has no scheme.
    reach = reach_where(f"//{environment.get('FIRESTORE_EMULATOR_HOST', '')}")
    try:
        here = open_resources({**environment, **given}, services, Log(), reach=reach, logs=False)
    except TemporaryError as error:
        services.close()
        if error.context.get("reason") != _ABSENT:
            raise
        raise MissingError(
            f"cannot use context '{name}': the project '{place['project']}' has no secret"
            f" '{place['key_secret']}' that you may see; see whether the credentials are yours"
            " (`gcloud auth application-default login`) and the installation is there"
        ) from error
    return Called(replace(installation(here), identify=partial(identify, services)), services)


_IDENTITY = "https://openidconnect.googleapis.com/v1/userinfo"


def identify(services: Services) -> str:
    """Return the e-mail address of the caller, a user or a service account.

    Raises:
        BellhopError: Google does not answer, or does not accept the caller.
    """
    answer = json.loads(services.ask("GET", _IDENTITY, doing="identify the caller"))
    return str(answer.get("email") or answer["sub"])
