"""A real project of Google Cloud for the contract suites, only on demand.

    pytest tests/contract -k gcp --live PREFIX --live-project ID --live-region REGION

with `--live-database`, where the records are to lie in another database than the default one. It
must be there; all that is made has a name that begins with the prefix, and is deleted when its test
is over: documents, secrets, a bucket. Without the options no test has credentials for Google.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from bellhop.adapters.gcp.services import EMULATORS, Services
from bellhop.adapters.gcp.store import DATABASE
from tests import live
from tests.contract.rigs.gcp import Rig

_STORAGE = "https://storage.googleapis.com/storage/v1/b"

SILENCE: Mapping[str, str] = {"NO_GCE_CHECK": "true", "CLOUDSDK_CONFIG": "/nowhere"}
"""Settings that keep Google's libraries from finding credentials on this machine."""


@dataclass(frozen=True)
class Project:
    """Which project is meant, and what may be made in it."""

    prefix: str
    project: str
    region: str
    database: str
    emulators: Mapping[str, str] = field(default_factory=dict)

    def install(self) -> str:
        """Make an installation of its own; return its place."""
        name = f"{self.prefix}-{uuid4().hex[:12]}"
        options = {"name": name, "location": self.region}
        services = Services(self.project, emulators=self.emulators)
        services.ask(
            "POST",
            f"{_STORAGE}?project={self.project}",
            doing=f"make the bucket '{name}'",
            body=json.dumps(options).encode(),
            headers={"Content-Type": "application/json"},
        )
        services.close()
        return json.dumps(
            {
                "project": self.project,
                "emulators": dict(self.emulators),
                "database": self.database,
                "bucket": name,
                "items": f"{name}-items",
                "secrets": f"{name}-secrets",
            }
        )


def add_options(parser: pytest.Parser) -> None:
    """Let a run name a project."""
    group = parser.getgroup("live")
    group.addoption(
        "--live-project", metavar="ID", help="the project of Google Cloud that is meant"
    )
    group.addoption("--live-database", metavar="ID", help="a Firestore database that is there")


def chosen(config: pytest.Config) -> Project | None:
    """Return which project a run is to use; None where it is to use none.

    Raises:
        UsageError: it is not said with what names, or where, or an account of AWS is named too.
    """
    project = config.getoption("--live-project")
    if project is None:
        return None
    if config.getoption("--live-account"):
        raise pytest.UsageError("--live-project and --live-account are two clouds: name one")
    prefix, region = live.prefix(config), config.getoption("--live-region")
    if not region:
        raise pytest.UsageError("--live-project makes a bucket: say where, by --live-region")
    database = config.getoption("--live-database") or DATABASE
    emulators = {name: os.environ[name] for name in EMULATORS if name in os.environ}
    return Project(prefix, project, region, database, emulators)


def remove(place: str) -> None:
    """Delete all that was made at a place."""
    rig, options = Rig(place), json.loads(place)
    for secret in list(rig.secrets().names()):
        rig.secrets().delete(secret)
    database = f"projects/{options['project']}/databases/{options['database']}"
    for collection in (options["items"], options["secrets"]):
        while names := _documents(rig.services, f"{database}/documents", collection):
            writes = [{"delete": name} for name in names]
            request = {"database": database, "writes": writes}
            rig.services.call("firestore", "commit", request, doing="delete documents")
    bucket = f"{_STORAGE}/{options['bucket']}"
    while names := _objects(rig.services, bucket):
        for name in names:
            rig.services.ask("DELETE", f"{bucket}/o/{name}", doing="delete an object")
    rig.services.ask("DELETE", bucket, doing=f"delete the bucket '{options['bucket']}'")
    rig.close()


def _documents(services: Services, parent: str, collection: str) -> list[str]:
    found: list[str] = services.call(
        "firestore",
        "list_documents",
        {
            "parent": parent,
            "collection_id": collection,
            "page_size": 200,
            "mask": {"field_paths": ["mark"]},
        },
        doing="list documents",
        read=lambda page: [each.name for each in page.documents],
    )
    return found


def _objects(services: Services, bucket: str) -> list[str]:
    listed = json.loads(services.ask("GET", f"{bucket}/o", doing="list objects"))
    return [each["name"].replace("/", "%2F") for each in listed.get("items", ())]
