"""The resources of a function on Google Cloud, opened by its first event.

Terraform sets the environment that is read here, beside the settings:

    BELLHOP_PROJECT     the project                  BELLHOP_DATABASE    the records' database
    BELLHOP_TOPICS      each inbox's topic, as JSON  BELLHOP_BUCKET      the bucket of the blobs
    BELLHOP_SECRETS     how secrets' names begin
    BELLHOP_SECRET_REGION  where clusters' secrets lie; wherever Google keeps them if it is not set
    BELLHOP_KMS_KEY     the key that seals secrets; the cloud's own if it is not set
    BELLHOP_KEY_SECRET  the secret with the key that seals records: 32 bytes, or those in base64
    BELLHOP_INGEST_KEY_SECRET  the secret with the key of ingest, which has only that one
    BELLHOP_INGEST_URL  where clusters send their events
    BELLHOP_INGEST_ALLOW  ranges of addresses that may send, with commas; any if it is not set
    BELLHOP_GUARD       the bucket that keeps Terraform from destroying what clusters are in
    THREADS             requests that one process works on at a time, functions-framework's own
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.adapters.gcp.fair_shares import FairShares
from bellhop.adapters.gcp.queue import PubsubQueue
from bellhop.adapters.gcp.services import Services
from bellhop.adapters.gcp.store import FirestoreStore
from bellhop.adapters.local.clock import SystemClock
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.errors import InvalidError
from bellhop.logs import JsonFormatter, Log, as_json, configure
from bellhop.runtime.cloud import resources as cloud
from bellhop.runtime.cloud.resources import by_inbox, given, ranges, reach_where, sealer
from bellhop.settings import read
from bellhop.state.messages import Publisher

LABELS: Mapping[str, str] = {
    "cluster": "cluster",
    "source": "eventsource",
    "trigger": "eventtrigger",
    "profile": "profile",
    "stage": "stage",
}
"""The label that is made of a field."""

_GOOGLES = "logging.googleapis.com/"
_TRACE_DIGITS = 32
_LABEL_LIMIT = 1024
"""Characters of a label's value that are kept, well below what an entry may have."""


class CloudFormatter(JsonFormatter):
    """Writes records for a project's logs.

        severity, message, time                the entry's own; everything else is its payload
        logging.googleapis.com/labels          the query `labels.cluster="prod/eu-1"` finds it
        logging.googleapis.com/trace           all lines that follow from one event are shown as one
        logging.googleapis.com/insertId        one line that comes twice is shown once

    The payload has the same fields as anywhere, those that make labels among them, so that a query
    says the same in both clouds.
    """

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def entry(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the fields of a record, and beside them what Cloud Logging looks for."""
        entry = super().entry(record)
        digest = hashlib.sha256(as_json(entry).encode()).hexdigest()
        more: dict[str, Any] = {_GOOGLES + "insertId": digest[:_TRACE_DIGITS]}
        labels = {
            label: str(entry[field])[:_LABEL_LIMIT]
            for field, label in LABELS.items()
            if entry.get(field)
        }
        if labels:
            more[_GOOGLES + "labels"] = labels
        if trace := entry.get("trace"):
            number = str(trace).rjust(_TRACE_DIGITS, "0")
            more[_GOOGLES + "trace"] = f"projects/{self._project}/traces/{number}"
        return {**entry, **more}


_THREADS = 4
"""Of one processor, where nobody says: as functions-framework has it."""


class Resources(cloud.Resources, frozen=True, kw_only=True):
    """An installation as its functions see it; `guard` is a bucket, if there is one.

    Clusters' secrets are stored in `secret_region` only, if there is one, sealed by `kms_key`.
    """

    queues: Mapping[str, PubsubQueue]
    services: Services
    database: str
    guard: str = ""
    secret_region: str = ""
    kms_key: str = ""

    def inbox(self, source: str) -> tuple[str, PubsubQueue]:
        """Find an inbox by the source of a CloudEvent, which ends in its topic.

        Raises:
            InvalidError: it is none of this installation's.
        """
        topic = source.rpartition("/")[2]
        for name, queue in self.queues.items():
            if queue.name == topic:
                return name, queue
        raise InvalidError(
            f"cannot determine the inbox of an event from '{source[:256]}': it names no topic of"
            " this"
            " installation; apply Terraform again"
        )


def from_environment() -> Resources:
    """Configure logging, and open the installation that the environment names."""
    # functions-framework puts another stream before stdout for as long as a request takes.
    configure(sys.__stdout__, CloudFormatter(os.environ.get("BELLHOP_PROJECT", "")))
    project = given(os.environ, "BELLHOP_PROJECT")
    # An emulator's address has no scheme.
    reach = reach_where(f"//{os.environ.get('FIRESTORE_EMULATOR_HOST', '')}")
    return open_resources(os.environ, Services(project), Log(), reach=reach)


def open_resources(
    environment: Mapping[str, str],
    services: Services,
    log: Log,
    *,
    reach: AddressPolicy = PUBLIC,
    logs: bool = True,
) -> Resources:
    """Open an installation; only the sealing key is requested.

    If it `logs`, entries of the event log are logged, too, and stored when the event ends.

    Raises:
        InvalidError: a variable is missing or cannot be used, or the key is none.
        TemporaryError: the key cannot be read now.
    """
    settings = read(environment)
    database = given(environment, "BELLHOP_DATABASE")
    store = FirestoreStore(services, clock=SystemClock(), database=database)
    blobs = CloudBlobs(services, given(environment, "BELLHOP_BUCKET"))
    opens = sealer(
        lambda name: _secret(services, name),
        given(environment, "BELLHOP_KEY_SECRET"),
        environment.get("BELLHOP_INGEST_KEY_SECRET", ""),
    )
    records = cloud.records_over(store, blobs, opens, settings)
    if logs:
        cloud.log_entries(records, settings, log)
    shares = FairShares(int(environment.get("THREADS") or _THREADS * (os.cpu_count() or 1)))
    queues = {
        name: PubsubQueue(
            services,
            topic,
            store=records.store,
            clock=records.clock,
            attempts=settings.attempts,
            shares=shares,
        )
        for name, topic in by_inbox(environment, "BELLHOP_TOPICS", "topic").items()
    }
    return Resources(
        settings=settings,
        records=records,
        queues=queues,
        publisher=Publisher(queues),
        services=services,
        database=database,
        secrets=given(environment, "BELLHOP_SECRETS"),
        ingest_url=environment.get("BELLHOP_INGEST_URL", ""),
        log=log,
        reach=reach,
        guard=environment.get("BELLHOP_GUARD", ""),
        secret_region=environment.get("BELLHOP_SECRET_REGION", ""),
        kms_key=environment.get("BELLHOP_KMS_KEY", ""),
        ingest_allow=ranges(environment, "BELLHOP_INGEST_ALLOW"),
    )


def _secret(services: Services, name: str) -> bytes:
    path = f"projects/{services.project}/secrets/{name}/versions/latest"
    answer = services.call(
        "secretmanager", "access_secret_version", {"name": path}, doing="read the sealing key"
    )
    return bytes(answer.payload.data)
