"""The request to register a cluster, and its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct, field

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.structs import Redacted
from bellhop.errors import BusyError, ConflictError, StaleError
from bellhop.installation import Inbound
from bellhop.registration.forwarder_pods import IMAGE, forwarder_manifests
from bellhop.state.cluster import Cluster

Pause = Callable[[float], None]


PATIENCE = timedelta(minutes=1)
"""A registration that has begun counts as running for this time."""

_EXPIRY_NOTICE = timedelta(days=30)
"""Credentials that end within this time cause a warning."""


class Registration(Struct, frozen=True):
    """A request to register a cluster; `labels` of None keep those of the cluster.

    - `twice` accepts a cluster that is registered under another name. - `install` deploys the
    forwarder's pods, with `image`, or if that is empty with the present one; None deploys them
    unless another field manager applies their Deployment. - `direct`: the API server calls ingest
    itself, without a forwarder. `audit`: it sends its log by the files in this folder, without a
    forwarder. - `managed` is the cluster's name in its cloud: its kubeconfig is valid for minutes
    and not stored; `assume_role` and `external_id` are of the role that reaches it, if not the
    caller's. - `renews` is the registration time of the cluster that this one renews; no other is
    changed. - `pauses` are fields of its spec about pauses; missing ones stay, as do `annotations`
    of None. - `take_over` accepts a cluster of another installation. - `applyset` is its set, none
    if empty; None keeps the present one.
    """

    namespace: str
    name: str
    kubeconfig: Kubeconfig
    labels: Mapping[str, str] | None
    inbound: Inbound
    forwarder_url: str = ""
    forwarder: bool = True
    twice: bool = False
    install: bool | None = False
    image: str = ""
    direct: bool = False
    audit: Path | None = None
    managed: str = ""
    assume_role: str = ""
    external_id: str = ""
    renews: datetime | None = None
    pauses: Mapping[str, Any] = {}
    take_over: bool = False
    annotations: Mapping[str, str] | None = None
    applyset: str | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def audience(self) -> str:
        """The audience of the tokens of the forwarder's account: the address of ingest."""
        return self.inbound.url.rstrip("/")

    @property
    def has_no_sender(self) -> bool:
        """Whether nothing of Bellhop runs in the cluster."""
        return self.direct or self.audit is not None

    def warn_of_expiry(self, now: datetime) -> Iterator[str]:
        """Warn if the credentials expire soon; managed clusters get new ones by themselves."""
        ends_at = None if self.managed else self.kubeconfig.ends_at
        if ends_at and ends_at - now < _EXPIRY_NOTICE:
            yield (
                f"its credentials end at {ends_at:%Y-%m-%d %H:%M} UTC, and nobody gets into the"
                " cluster after that: register it again before, or by a token that does not end, as"
                " the how-to 'Register a cluster' says"
            )

    def manifests(self, image: str = "") -> list[dict[str, Any]]:
        """Return all objects of the forwarder but its Secret; `image` is that of its present pods.

        Raises:
            InvalidError: the image is none.
        """
        ports = map(_port, (self.inbound.url, self.kubeconfig.server))
        return forwarder_manifests(self.image or image or IMAGE, ports, self.audience)


class Registered(Redacted, frozen=True):
    """The result of a registration; `secret` is the forwarder's, `image` that of its pods.

    `installed` says whether this registration applied the pods.
    """

    secret_fields: ClassVar[Collection[str]] = ("secret",)
    cluster: Cluster
    again: bool
    warnings: Sequence[str] = field(default_factory=tuple)
    secret: Mapping[str, Any] | None = None
    image: str = ""
    installed: bool = False


def _port(url: str) -> int:
    return urlsplit(url).port or 443


class LostRaceError(StaleError):
    """The cluster's record changed since this attempt read it."""


def busy_error(key: str, why: str) -> BusyError:
    return BusyError(f"cannot register cluster '{key}': {why}; look at it, and try in a minute")


def second_name_error(key: str, other: str) -> ConflictError:
    return ConflictError(
        f"cannot register cluster '{key}': it is cluster '{other}' already (their kube-system has"
        f" one uid), and everything would be applied to it twice; deregister '{other}' first, or"
        " give --allow-twice if they are copies of one backup"
    )
