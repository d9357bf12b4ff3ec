"""The whole installation, for renewals of registrations and for abandoned declarations."""

from __future__ import annotations

from bellhop.catalog.cache import Catalogs
from bellhop.declarations.apply import ManifestWriter
from bellhop.installation import Inbound, Installation, Ticking, Worker
from bellhop.ports.kube import Access
from bellhop.ports.store import Secrets
from bellhop.runtime.cloud.resources import Resources

FUNCTIONS = Worker(
    "the ingest function",
    "see what ails the ingest function (`bellhop doctor`, `bellhop logs`)",
    "the functions are at it",
)


def whole(here: Resources, secrets: Secrets, access: Access) -> Installation:
    """Make an installation of a function's resources; a cloud's certificates need no authority."""
    catalogs = Catalogs(here.records)
    return Installation(
        settings=here.settings,
        records=here.records,
        catalogs=catalogs,
        declare=ManifestWriter(here.records, catalogs, here.publisher, here.settings),
        secrets=secrets,
        access=access,
        reach=here.reach,
        publisher=here.publisher,
        dead=dict(here.queues),
        inbound=Inbound(here.ingest_url, ""),
        queues=dict(here.queues),
        vitals=Ticking(here.secrets),
        worker=FUNCTIONS,
    )
