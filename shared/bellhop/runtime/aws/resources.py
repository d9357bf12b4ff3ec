"""The resources of a function on AWS: records and queues, opened by its first event.

Terraform sets the environment that is read here, beside the settings:

    BELLHOP_TABLE       the table of the records     BELLHOP_BUCKET      the bucket of the blobs
    BELLHOP_QUEUES      each inbox's URL, as JSON    BELLHOP_SECRETS     how secrets' names begin
    BELLHOP_KEY_SECRET  the secret with the key that seals records: 32 bytes, or those in base64
    BELLHOP_INGEST_KEY_SECRET  the secret with the key of ingest, which has only that one
    BELLHOP_INGEST_URL  where clusters send their events
    BELLHOP_INGEST_ALLOW  ranges of addresses that may send, with commas; any if it is not set
    BELLHOP_KMS_KEY     the key that seals secrets; the cloud's own if it is not set
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus

from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.services import Services
from bellhop.adapters.aws.store import DynamoStore, S3Blobs
from bellhop.adapters.local.clock import SystemClock
from bellhop.core.address_policy import PUBLIC, AddressPolicy
from bellhop.logs import Log, configure
from bellhop.runtime.aws.metrics import PENDING, Metrics
from bellhop.runtime.cloud import resources as cloud
from bellhop.runtime.cloud.resources import (
    by_inbox,
    decoded,
    given,
    ranges,
    reach_where,
    sealer,
)
from bellhop.settings import read
from bellhop.state.messages import Publisher


class Resources(cloud.Resources, frozen=True, kw_only=True):
    """An installation as its functions see it; its secrets are sealed by `kms_key`.

    The secrets of clusters are in Parameter Store if their names begin with a slash.
    `queues` are by the first of the inboxes that share one.
    """

    queues: Mapping[str, SqsQueue]
    services: Services
    metrics: Metrics
    kms_key: str = ""

    def begin(self) -> None:
        self.metrics.begin()

    def report_pending(self, age: timedelta) -> None:
        """Publish how old the oldest pending work is."""
        self.metrics.measure(PENDING, round(age.total_seconds()))

    def report_alert(self, name: str, count: int, clusters: Sequence[str]) -> None:
        """Publish how often an alert is the case, and a metric of each named cluster."""
        self.metrics.measure(name, count)
        self.metrics.name(name, clusters)

    def count_refusal(self, status: int) -> None:
        """Count a sender that was refused: an HTTP API has one metric for all of 4xx."""
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            self.metrics.count_refusal()

    def end(self) -> None:
        """Write buffered entries and metrics at the end of an event: there may be no later one."""
        super().end()
        self.metrics.publish()


def from_environment() -> Resources:
    """Configure logging, and open the installation that the environment names."""
    configure()
    reach = reach_where(os.environ.get("AWS_ENDPOINT_URL", ""))
    return open_resources(os.environ, Services(), Log(), reach=reach)


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
    settings, table = read(environment), given(environment, "BELLHOP_TABLE")
    store = DynamoStore(services, table, clock=SystemClock())
    blobs = S3Blobs(services, given(environment, "BELLHOP_BUCKET"))
    opens = sealer(
        lambda name: _secret(services, name),
        given(environment, "BELLHOP_KEY_SECRET"),
        environment.get("BELLHOP_INGEST_KEY_SECRET", ""),
    )
    records = cloud.records_over(store, blobs, opens, settings)
    metrics = Metrics(table, log)
    if logs:
        cloud.log_entries(records, settings, log, metrics.count)
    urls = by_inbox(environment, "BELLHOP_QUEUES", "URL")
    firsts = {url: inbox for inbox, url in reversed([*urls.items()])}
    queue = partial(
        SqsQueue,
        services,
        clock=records.clock,
        visibility=settings.visibility,
        attempts=settings.attempts,
    )
    by_url = {url: queue(url) for url in firsts}
    return Resources(
        settings=settings,
        records=records,
        queues={inbox: by_url[url] for inbox, url in urls.items() if firsts[url] == inbox},
        publisher=Publisher({inbox: by_url[url] for inbox, url in urls.items()}),
        services=services,
        secrets=given(environment, "BELLHOP_SECRETS"),
        ingest_url=environment.get("BELLHOP_INGEST_URL", ""),
        log=log,
        metrics=metrics,
        reach=reach,
        kms_key=environment.get("BELLHOP_KMS_KEY", ""),
        ingest_allow=ranges(environment, "BELLHOP_INGEST_ALLOW"),
    )


def _secret(services: Services, name: str) -> bytes:
    answer = services.call(
        "secretsmanager", "get_secret_value", {"SecretId": name}, doing="read the sealing key"
    )
    return bytes(answer.get("SecretBinary") or decoded(answer.get("SecretString", "")))
