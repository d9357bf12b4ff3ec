"""What a function works with: records and queues, put together by its first event.

Terraform sets the environment that is read here, beside the settings:

    BELLHOP_TABLE       the table of the records     BELLHOP_BUCKET      the bucket of the blobs
    BELLHOP_QUEUES      each inbox's URL, as JSON    BELLHOP_SECRETS     how secrets' names begin
    BELLHOP_KEY_SECRET  the secret with the key that seals records: 32 bytes, or those in base64
    BELLHOP_INGEST_URL  where clusters send their events
    BELLHOP_INGEST_ALLOW  address ranges from which they may, with commas; any if it is not set
    BELLHOP_KMS_KEY     the key that seals secrets; the account's own if it is not set
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeAlias, TypeVar
from urllib.parse import urlsplit

from bellhop.adapters.aws.blobs import S3Blobs
from bellhop.adapters.aws.queue import SqsQueue
from bellhop.adapters.aws.services import Services
from bellhop.adapters.aws.store import DynamoStore
from bellhop.adapters.local.clock import SystemClock
from bellhop.aws.metrics import Metrics
from bellhop.aws.told import ToldLedger
from bellhop.errors import InvalidError
from bellhop.logs import Log
from bellhop.messages import INBOXES, Publisher
from bellhop.model.reach import ABROAD, HERE, Reach
from bellhop.records import Records, Sealer
from bellhop.records.ledger import Bounds
from bellhop.settings import Settings, read

KEY_BYTES = 32

_LOOKS = 30.0
"""Seconds between two looks whether the installation was left for another one."""

T = TypeVar("T")

Range: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Resources:
    """An installation as its functions see it.

    `secrets` is how secrets' names begin, sealed by `kms_key`; `reach` says which addresses
    clusters may have, and `ingest_allow` from which they may send, any if there is none.
    """

    settings: Settings
    records: Records
    queues: Mapping[str, SqsQueue]
    publisher: Publisher
    services: Services
    secrets: str
    ingest_url: str
    log: Log
    metrics: Metrics
    reach: Reach = ABROAD
    kms_key: str = ""
    ingest_allow: tuple[Range, ...] = ()

    def end(self) -> None:
        """Write what is at hand when an event is done: nobody may be there to do it later."""
        if lost := self.records.ledger.flush():
            self.log.warning("Lost lines of the ledger: the store did not take them", lines=lost)
        self.metrics.tell()


Open = Callable[[], Resources]


class Ready(Generic[T]):
    """A stage, and what it works with, made when they are asked for first."""

    def __init__(self, make: Callable[[Resources], T], opening: Open) -> None:
        self._make = make
        self._opening = opening
        self._lock = threading.Lock()
        self._made: tuple[Resources, T] | None = None
        self._look_at = 0.0

    def get(self) -> tuple[Resources, T]:
        """Return both; what fails is tried again by the next event.

        Raises:
            BusyError: the installation was left for another one, or is being filled.
        """
        with self._lock:
            if self._made is None:
                here = self._opening()
                self._made = here, self._make(here)
            self._made[0].metrics.begin()
            if time.monotonic() >= self._look_at:
                self._made[0].records.moves.refuse()
                self._look_at = time.monotonic() + _LOOKS
            return self._made


def from_environment() -> Resources:
    """Open the installation that the environment names."""
    reach = reach_where(os.environ.get("AWS_ENDPOINT_URL", ""))
    return open_resources(os.environ, Services(), Log(), reach=reach)


def reach_where(endpoint: str) -> Reach:
    """Say how far calls may go: where AWS itself is on loopback, so are clusters."""
    host = urlsplit(endpoint).hostname or ""
    return HERE if host and ABROAD.refusal(host) and not HERE.refusal(host) else ABROAD


def open_resources(
    environment: Mapping[str, str],
    services: Services,
    log: Log,
    *,
    reach: Reach = ABROAD,
    tells: bool = True,
) -> Resources:
    """Put an installation together; the key is read, and nothing else is asked for.

    If it `tells`, the ledger's lines are logged, too, and written when the work at hand is done.

    Raises:
        InvalidError: a variable is missing or cannot be used, or the key is none.
        TemporaryError: the key cannot be read now.
    """
    settings = read(environment)
    clock = SystemClock()
    store = DynamoStore(services, _given(environment, "BELLHOP_TABLE"), clock=clock)
    blobs = S3Blobs(services, _given(environment, "BELLHOP_BUCKET"))
    sealer = Sealer(_key(services, _given(environment, "BELLHOP_KEY_SECRET")))
    bounds = Bounds(timedelta(days=settings.ledger_days), settings.ledger_megabytes * 1024 * 1024)
    records = Records(store, blobs, sealer, clock, bounds)
    secrets = _given(environment, "BELLHOP_SECRETS")
    metrics = Metrics(secrets, log)
    if tells:
        records.ledger = ToldLedger(records.store, bounds, log, metrics.count)
        records.ledger.gather()
    queues = {
        name: SqsQueue(
            services,
            url,
            clock=clock,
            visibility=settings.visibility,
            attempts=settings.attempts,
        )
        for name, url in _urls(environment).items()
    }
    return Resources(
        settings=settings,
        records=records,
        queues=queues,
        publisher=Publisher(queues),
        services=services,
        secrets=secrets,
        ingest_url=environment.get("BELLHOP_INGEST_URL", ""),
        log=log,
        metrics=metrics,
        reach=reach,
        kms_key=environment.get("BELLHOP_KMS_KEY", ""),
        ingest_allow=_ranges(environment.get("BELLHOP_INGEST_ALLOW", "")),
    )


def _given(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise InvalidError(f"cannot start: the variable {name} is not set; apply Terraform again")
    return environment[name]


def _urls(environment: Mapping[str, str]) -> Mapping[str, str]:
    try:
        urls = dict(json.loads(_given(environment, "BELLHOP_QUEUES")))
    except (TypeError, ValueError) as error:
        raise InvalidError(
            "cannot start: the variable BELLHOP_QUEUES is no JSON object of inboxes and URLs"
        ) from error
    missing = ", ".join(sorted(INBOXES.keys() - urls))
    if missing:
        raise InvalidError(f"cannot start: the variable BELLHOP_QUEUES has no URL for {missing}")
    return {name: str(urls[name]) for name in INBOXES}


def _ranges(text: str) -> tuple[Range, ...]:
    try:
        return tuple(ipaddress.ip_network(each.strip()) for each in text.split(",") if each.strip())
    except ValueError as error:
        raise InvalidError(
            "cannot start: the variable BELLHOP_INGEST_ALLOW has something that is no range of"
            " addresses, such as 203.0.113.0/24"
        ) from error


def _key(services: Services, name: str) -> bytes:
    answer = services.call(
        "secretsmanager", "get_secret_value", {"SecretId": name}, doing="read the sealing key"
    )
    key = answer.get("SecretBinary") or _decoded(answer.get("SecretString", ""))
    if len(key) != KEY_BYTES:
        raise InvalidError(
            f"cannot use the secret '{name}' as sealing key: it has {len(key)} bytes, not"
            f" {KEY_BYTES}; give back the value this installation was made with"
        )
    return bytes(key)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
