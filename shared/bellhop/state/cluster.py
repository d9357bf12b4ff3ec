"""A registered cluster, its health and missed events, and the clusters that a set selects."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from bellhop.core.gvk import GVK
from bellhop.core.structs import Redacted
from bellhop.errors import InvalidError
from bellhop.state.ingest_policy import IngestPolicy, Listener, WatchedKind

TALLIED = timedelta(hours=12)
"""The length of a tally: two are kept, so that counts are at most a day old."""


class Tally(Struct, frozen=True):
    """The objects that resyncs listed from `since` on, and the changes that no event had shown."""

    since: datetime
    seen: int = 0
    missed: int = 0


def add_tally(tallies: Sequence[Tally], now: datetime, seen: int, missed: int) -> tuple[Tally, ...]:
    """Add a resync to the tallies, and drop those older than a day.

    A tally of the future was begun by a clock that was ahead, and is dropped, too.
    """
    kept = [each for each in tallies if timedelta(0) <= now - each.since < 2 * TALLIED]
    if not kept or now - kept[-1].since >= TALLIED:
        kept.append(Tally(now))
    last = kept[-1]
    kept[-1] = Tally(last.since, last.seen + seen, last.missed + missed)
    return tuple(kept[-2:])


MANAGEMENT = "mgmt/mgmt"
"""The cluster that stands for Sveltos' management cluster, under the name that it registers."""

RENEWAL_OPTION = "tokenRequestRenewalOption"
"""The field of a cluster's spec that has its login renewed by tokens of a service account."""

MOST_LABELS = 256
"""Labels of one cluster: with the longest names and values they take a hundred kilobytes."""

MOST_METADATA = 64 * 1024
"""Bytes of a cluster's annotations and spec together, as JSON."""


class Cluster(Redacted, frozen=True):
    """A registered cluster."""

    secret_fields: ClassVar[Collection[str]] = ("forwarder",)
    namespace: str
    name: str
    labels: Mapping[str, str]
    kubernetes: str
    token_digest: str
    registered_at: datetime
    forwarder: Mapping[str, str] = field(default_factory=dict)
    """The way in which its API server sends events, as registration set it."""
    credentials: str = ""
    """The version of the kubeconfig in the secret store, which is stored before this record."""
    former_digest: str = ""
    """Of the sender's token before the present one."""
    former_until: datetime | None = None
    """The former token counts until then, or without an end."""
    uid: str = ""
    """Of its namespace kube-system, which no two clusters share."""
    abandoned: str = ""
    """The UID of the cluster that had this name before and may still send events."""
    annotations: Mapping[str, str] = {}
    """Of its SveltosCluster, for templates."""
    spec: Mapping[str, Any] = {}
    """Of its SveltosCluster: `clusters/pause.py` reads `paused` and `activeWindow` from it."""
    managed: str = ""
    """The ARN of an EKS cluster or the full name of a GKE cluster: the caller's own identity
    reaches it, and the secret store has no kubeconfig of it."""
    given: Mapping[str, str] = {}
    """The labels that classifiers gave, each with the classifier's name."""
    assume_role: str = ""
    """The role that reaches an EKS cluster of another account."""
    external_id: str = ""
    """For a role whose trust policy asks for one."""
    configuration: Literal["", "on", "preview", "taken-over"] = ""
    """Its custom resources are the configuration; in a preview they are only read.

    One that is taken over was Sveltos' management cluster: its profiles adopt what that deployed.
    """

    @property
    def key(self) -> str:
        """Return `namespace/name`, as users write it."""
        return f"{self.namespace}/{self.name}"

    def refuse_too_much(self) -> None:
        """Check that it stays below the limit of an item.

        Raises:
            InvalidError: it has too many labels, or too much else.
        """
        if len(self.labels) > MOST_LABELS:
            raise InvalidError(
                f"cannot give cluster '{self.key}' {len(self.labels)} labels: a cluster may have"
                f" {MOST_LABELS}; take some away"
            )
        size = len(json.dumps([dict(self.annotations), dict(self.spec)]))
        if size > MOST_METADATA:
            raise InvalidError(
                f"cannot annotate cluster '{self.key}': its annotations and data have {size:,}"
                f" bytes, and it may have {MOST_METADATA:,}; take some away"
            )

    def gate(
        self,
        kinds: Iterable[WatchedKind],
        revision: int,
        listeners: Iterable[Listener] = (),
        held: Iterable[WatchedKind] = (),
        followed: Iterable[WatchedKind] = (),
        configured: Iterable[WatchedKind] = (),
    ) -> IngestPolicy:
        """Return the ingest policy of this cluster, with the kinds and events that count."""
        return IngestPolicy(
            self.token_digest,
            tuple(kinds),
            revision,
            self.former_digest,
            self.former_until,
            direct=bool(self.forwarder.get("direct")),
            listeners=tuple(listeners),
            held=tuple(held),
            followed=tuple(followed),
            configured=tuple(configured),
        )


class SetSelection(Struct, frozen=True):
    """The clusters that a set with maxReplicas selects, in the order of selection."""

    clusters: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    """Those that are down, and stay as long as no other cluster can replace them."""


class Health(Struct, frozen=True):
    """The state of a cluster at the last call, and counts of missed events."""

    state: Literal["Healthy", "Silent", "Unauthorized", "Down", "Unknown"] = "Unknown"
    """Silent is computed for people, and never written."""
    message: str = ""
    swept_at: datetime | None = None
    seen: int = 0
    """Objects that resyncs listed since `counted_since`."""
    missed: int = 0
    """Changes of them that only a resync found, since no event came."""
    judgement: Mapping[str, str] = {}
    """A digest of each source by which all objects were evaluated last, or of each `SOURCE KIND`
    where some kinds could not be listed."""
    uid: str = ""
    """Of its namespace kube-system."""
    failures: int = 0
    """Resyncs in a row that failed."""
    walk: str = ""
    """The id of the last resync that ended."""
    unseen: tuple[GVK, ...] = ()
    """The kinds that it could not list."""
    mute: bool = False
    """Its API server could not be set up to send events."""
    followed: tuple[GVK, ...] = ()
    """The kinds of objects that templates read, read again since the cluster sends their events."""
    tallies: tuple[Tally, ...] = ()
    unserved: tuple[GVK, ...] = ()
    """The kinds that the cluster does not serve."""
    ends_at: datetime | None = None
    """The end of the credentials of an Unauthorized cluster, if it is known."""
    since: datetime | None = None
    """The beginning of the state, or of the message."""
    began_at: datetime | None = None
    """The beginning of the last resync that ended."""

    @property
    def away(self) -> bool:
        """Return whether nothing can be done in the cluster until somebody repairs it."""
        return self.state in {"Down", "Unauthorized"}

    @property
    def counted_since(self) -> datetime | None:
        """Return the beginning of `seen` and `missed`; None if nothing was counted yet."""
        return self.tallies[0].since if self.tallies else None


class Circuit(Struct, frozen=True):
    """An open circuit breaker of a cluster: only a probe calls it."""

    since: datetime
    until: datetime
    """The time of the next probe."""
    said: str
    """The error of the last call."""
    failures: int = 0
    """Probes that failed."""
    closing: bool = False
    """The cluster answered: calls are allowed, and messages that wait are being published."""


class Heartbeat(Struct, frozen=True):
    """The last heartbeat of a cluster's sender, and its state then."""

    at: datetime
    ahead: float = 0.0
    """Seconds by which its clock was ahead."""
    version: str = ""
    """Of a forwarder; empty for an API server that sends by itself."""
    owed: int = 0
    """Objects that the forwarder has not sent yet, since `since`."""
    since: datetime | None = None
    problem: str = ""
    messaging: str = ""
    """The error that keeps it from the cluster's messaging system."""
