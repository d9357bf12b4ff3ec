"""An installation on Google Cloud in the hands of a person, who calls it with their own rights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from bellhop.adapters.gcp.gke import GkeClusters
from bellhop.adapters.gcp.services import Services
from bellhop.errors import MissingError, TemporaryError
from bellhop.installation.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.cloud.environment import reach_where
from bellhop.runtime.gcp.installation import installation
from bellhop.runtime.gcp.resources import open_resources

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
"""What functions read from their environment, by the name that Terraform's output has for it."""

_ABSENT = "NOT_FOUND"


class Called(Struct, frozen=True):
    """An opened installation, and the connections to it."""

    installation: Installation
    services: Services

    @property
    def gke(self) -> GkeClusters:
        """The GKE clusters that the caller may see."""
        return GkeClusters(self.services)

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a block without a snapshot: Firestore would need its time in each read."""
        return nullcontext()

    def close(self) -> None:
        """Let go of all connections."""
        self.services.close()


def services_of(place: Mapping[str, Any], environment: Mapping[str, str]) -> Services:
    """Make the services of a place; nothing is called."""
    return Services(place["project"], emulators=environment)


def call(place: Mapping[str, Any], environment: Mapping[str, str], *, name: str) -> Called:
    """Open the installation of a place that Terraform's output describes.

    Settings are those of the caller's environment. What the ledger is told is not logged.

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
        here = open_resources({**environment, **given}, services, Log(), reach=reach, tells=False)
    except TemporaryError as error:
        services.close()
        if error.context.get("reason") != _ABSENT:
            raise
        raise MissingError(
            f"cannot use context '{name}': the project '{place['project']}' has no secret"
            f" '{place['key_secret']}' that you may see; see whether the credentials are yours"
            " (`gcloud auth application-default login`) and the installation is there"
        ) from error
    return Called(installation(here), services)
