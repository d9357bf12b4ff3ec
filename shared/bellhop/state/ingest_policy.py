"""Senders that may send events of a cluster, their proof, and the kinds and events that count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from bellhop.core.gvk import GVK
from bellhop.core.structs import Redacted

MOST_FOLLOWED = 256
"""Kinds whose events count since templates read their objects: resyncs read those beyond it."""


class WatchedKind(Struct, frozen=True):
    """A kind whose events count in one cluster."""

    gvk: GVK
    plural: str = ""
    """Empty until discovery has found it."""
    own: bool = False
    """A source asks for objects that Bellhop applied itself, too."""


class Criterion(Struct, frozen=True):
    """Regular expressions that a CloudEvent must match; an empty one matches any."""

    source: str = ""
    type: str = ""
    subject: str = ""
    channel: str = ""
    """The subject of the messaging system that carried the event."""


class Listener(Struct, frozen=True):
    """An EventSource that takes the CloudEvents that match one of its criteria."""

    source: str
    criteria: tuple[Criterion, ...]


class IngestPolicy(Struct, frozen=True):
    """The part of a cluster that ingest needs: digests of its tokens, and what counts."""

    token_digest: str
    kinds: tuple[WatchedKind, ...]
    revision: int
    former_digest: str = ""
    former_until: datetime | None = None
    """The former token counts until then, or without an end."""
    direct: bool = False
    """The present token is an API server's: its requests are hints, and no objects are taken from
    them."""
    listeners: tuple[Listener, ...] = ()
    held: tuple[WatchedKind, ...] = ()
    """The kinds of which profiles have objects whose drift is to be corrected."""
    followed: tuple[WatchedKind, ...] = ()
    """The kinds of which templates read objects."""
    configured: tuple[WatchedKind, ...] = ()
    """The kinds of the configuration that the cluster holds: only the names of their objects are
    sent."""

    def digests(self, now: datetime) -> tuple[str, str]:
        """Return the digests of the present and of the former token, the same one for none."""
        return _in_force(self.token_digest, self.former_digest, self.former_until, now)


class Sender(Redacted, frozen=True):
    """A sender of CloudEvents from outside, for one cluster and nothing else."""

    secret_fields: ClassVar[Collection[str]] = ("proof", "former")
    cluster: str
    name: str
    made_at: datetime
    signs: bool = False
    """It signs requests, and `proof` is its key; else `proof` is the digest of its token."""
    proof: str = ""
    former: str = ""
    """The proof before `changed_at`, which counts until `former_until`, or without an end."""
    changed_at: datetime | None = None
    former_until: datetime | None = None

    def proofs(self, now: datetime) -> tuple[str, str]:
        """Return the present and the former proof, the same one for none."""
        return _in_force(self.proof, self.former, self.former_until, now)


def _in_force(present: str, former: str, until: datetime | None, now: datetime) -> tuple[str, str]:
    ended = until is not None and until <= now
    return present, present if ended or not former else former


class Issuer(Struct, frozen=True):
    """The issuer of a cluster's service account tokens, with its keys as of `read_at`."""

    issuer: str
    audience: str
    """The address that the cluster sends to: only tokens for it count."""
    keys: tuple[Mapping[str, str], ...]
    """None where they may not be read."""
    read_at: datetime


class Refusals(Struct, frozen=True):
    """The requests in a cluster's name that had a wrong token."""

    count: int
    since: datetime
    """The time of the first one."""
    at: datetime
    """The time of the last one."""
