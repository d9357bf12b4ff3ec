"""The resources of a function: records and queues of any cloud, as Terraform has set them."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from bellhop.adapters.local.clock import SystemClock
from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from bellhop.errors import InvalidError
from bellhop.logs import Log
from bellhop.ports.queue import DeadLetters, Queue, Watched
from bellhop.ports.store import Blobs, Store
from bellhop.runtime.cloud.event_log import LoggedEventLog
from bellhop.settings import Settings
from bellhop.state.event_log import Bounds, Entry
from bellhop.state.messages import CHARTS, INBOXES, Publisher
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer

KEY_BYTES = 32

Range: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def given(environment: Mapping[str, str], name: str) -> str:
    """Return a variable that must be there.

    Raises:
        InvalidError: it is not set, or empty.
    """
    if not environment.get(name):
        raise InvalidError(f"cannot start: the variable {name} is not set; apply Terraform again")
    return environment[name]


def by_inbox(environment: Mapping[str, str], name: str, what: str) -> Mapping[str, str]:
    """Read a variable that has one of `what` for each inbox, as JSON.

    Raises:
        InvalidError: it is no such thing, or leaves out an inbox.
    """
    try:
        found = dict(json.loads(given(environment, name)))
    except (TypeError, ValueError) as error:
        raise InvalidError(
            f"cannot start: the variable {name} is not a JSON object of inboxes and {what}s"
        ) from error
    missing = ", ".join(sorted(INBOXES.keys() - found))
    if missing:
        raise InvalidError(f"cannot start: the variable {name} has no {what} for {missing}")
    there = [*INBOXES, *({CHARTS} & found.keys())]
    return {inbox: str(found[inbox]) for inbox in there}


def ranges(environment: Mapping[str, str], name: str) -> tuple[Range, ...]:
    """Read a variable that has ranges of addresses with commas between; none if it is not set.

    Raises:
        InvalidError: something of it is no such range.
    """
    texts = [each.strip() for each in environment.get(name, "").split(",") if each.strip()]
    try:
        return tuple(ipaddress.ip_network(each) for each in texts)
    except ValueError as error:
        raise InvalidError(
            f"cannot start: the variable {name} has something that is not a range of"
            " addresses, such as 203.0.113.0/24"
        ) from error


def sealer(read: Callable[[str], bytes], secret: str, of_ingest: str) -> Sealer:
    """Make what opens records, by the keys in secrets that `read` reads by their names.

    Raises:
        InvalidError: what one of them has is no key.
    """
    return Sealer(*(_key(read(name), name) for name in (secret, of_ingest) if name))


def _key(content: bytes, secret: str) -> bytes:
    """Read the content of a secret as a key: 32 bytes, or those in base64."""
    key = content if len(content) == KEY_BYTES else decoded(content)
    if len(key) != KEY_BYTES:
        raise InvalidError(
            f"cannot use the secret '{secret}' as sealing key: it has {len(content)} bytes, not"
            f" {KEY_BYTES}; give back the value this installation was made with"
        )
    return key


def decoded(text: bytes | str) -> bytes:
    """Decode base64; nothing comes of what is none."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def reach_where(endpoint: str) -> AddressPolicy:
    """Say how far calls may go: where the cloud itself is on loopback, so are clusters."""
    host = urlsplit(endpoint).hostname or ""
    return LOCAL if host and PUBLIC.refusal(host) and not LOCAL.refusal(host) else PUBLIC


ATTENTION = "Something needs attention"
"""The line of an alert, which Google Cloud's metric counts."""


class CloudQueue(Queue, DeadLetters, Watched, Protocol):
    """An inbox as a port for publishing, for dead letters and for its backlog."""


class Resources(Struct, frozen=True, kw_only=True):
    """An installation as its functions see it.

    `secrets` is how secrets' names begin; `reach` says which addresses clusters may have, and
    `ingest_allow` from which they may send, any if there is none.
    """

    settings: Settings
    records: Records
    queues: Mapping[str, CloudQueue]
    publisher: Publisher
    secrets: str
    ingest_url: str
    log: Log
    reach: AddressPolicy = PUBLIC
    ingest_allow: tuple[Range, ...] = ()

    @property
    def contents(self) -> AddressPolicy:
        """Return the reach of what profiles name: charts, files, registries, metrics."""
        return self.reach.within(self.settings.egress_allow)

    def begin(self) -> None:
        """Begin an event."""

    def report_pending(self, age: timedelta) -> None:
        """Log how old the oldest pending work is."""
        seconds = round(age.total_seconds())
        self.log.info("Measured the oldest pending work", pendingSeconds=seconds)

    def report_alert(self, name: str, count: int, clusters: Sequence[str]) -> None:
        """Log how often an alert is the case: a line for each named cluster, one for all others."""
        for cluster in clusters:
            self.log.info(ATTENTION, alert=name, cluster=cluster)
        if count > len(clusters):
            self.log.info(ATTENTION, alert=name, others=count - len(clusters))

    def count_refusal(self, status: int) -> None:
        """Count a request that was refused, where nobody else does."""

    def end(self) -> None:
        """Write buffered entries at the end of an event: there may be no later one."""
        if lost := self.records.ledger.flush():
            self.log.warning("Lost lines of the event log: the store did not take them", lines=lost)


def records_over(store: Store, blobs: Blobs, sealer: Sealer, settings: Settings) -> Records:
    """Make the records of an installation over what a cloud has for them."""
    return Records(store, blobs, sealer, SystemClock(), _bounds(settings))


def log_entries(
    records: Records, settings: Settings, log: Log, count: Callable[[Entry], None] | None = None
) -> None:
    """Have entries of the event log logged, too, and stored when the event ends."""
    records.ledger = LoggedEventLog(records.store, _bounds(settings), log, count)
    records.ledger.gather()


def _bounds(settings: Settings) -> Bounds:
    return Bounds(timedelta(days=settings.ledger_days), settings.ledger_megabytes * 1024 * 1024)
