"""The whole installation, for what registers clusters anew and resumes declarations."""

from __future__ import annotations

from bellhop.aws.access import access_of, secrets_of
from bellhop.aws.resources import Resources
from bellhop.fleet.installation import Inbound, Installation, Worker
from bellhop.fleet.vitals import Ticking
from bellhop.records.catalogs import Catalogs
from bellhop.stages.declare import Declare

FUNCTIONS = Worker(
    "the ingest function",
    "see what ails the ingest function (`bellhop doctor`, `bellhop logs`)",
    "the functions are at it",
)


def installation(here: Resources) -> Installation:
    """Make an installation of a function's resources; AWS' certificates need no authority."""
    catalogs, secrets = Catalogs(here.records), secrets_of(here)
    return Installation(
        settings=here.settings,
        records=here.records,
        catalogs=catalogs,
        declare=Declare(here.records, catalogs, here.publisher, here.settings),
        secrets=secrets,
        access=access_of(here, secrets),
        reach=here.reach,
        publisher=here.publisher,
        dead=dict(here.queues),
        inbound=Inbound(here.ingest_url, ""),
        queues=dict(here.queues),
        vitals=Ticking(here.secrets),
        worker=FUNCTIONS,
    )
