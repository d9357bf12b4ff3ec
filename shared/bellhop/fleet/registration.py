"""How a cluster joins and leaves the fleet.

  look: reachable? which version? which rights?          nothing is changed yet
  in the cluster: namespace, account, rights, Secret     harmless alone: nobody rings
  here: kubeconfig, then the record                      the record's sweep sets up the ringing

A failure on the way leaves objects in the cluster that do nothing, and registering again takes
them over. Leaving goes the other way round, and needs no cluster that answers.
"""

from __future__ import annotations

import hashlib
import json
import secrets as entropy
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.certificates import issue, make_authority
from bellhop.engine.wiring import (
    NAME,
    NAMESPACE,
    forwarder_rights,
    forwarder_role,
    forwarder_secret,
)
from bellhop.errors import BellhopError, DeniedError, InvalidError, MissingError
from bellhop.fleet.installation import Inbound, Installation
from bellhop.fleet.rights import missing_for_applying, missing_for_watching, watched
from bellhop.model.gvk import GVK
from bellhop.model.kubeconfig import Kubeconfig, sanitise
from bellhop.model.record import Cluster

_TOKEN_BYTES = 32
_PATH_BYTES = 24
_VALIDITY = timedelta(days=3650)
"""Both certificates are replaced whenever the cluster is registered again."""

_SERVICE_NAMES = (f"{NAME}.{NAMESPACE}.svc", f"{NAME}.{NAMESPACE}.svc.cluster.local")
_RBAC = "rbac.authorization.k8s.io"
_REMOVED = (
    (GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), ""),
    (GVK(_RBAC, "v1", "ClusterRoleBinding"), ""),
    (GVK(_RBAC, "v1", "ClusterRole"), ""),
    (GVK("", "v1", "Secret"), NAMESPACE),
    (GVK(_RBAC, "v1", "RoleBinding"), NAMESPACE),
    (GVK(_RBAC, "v1", "Role"), NAMESPACE),
    (GVK("", "v1", "ServiceAccount"), NAMESPACE),
)
_NAMESPACE = GVK("", "v1", "Namespace")


@dataclass(frozen=True)
class Wish:
    """What a user asks for; `labels` of None keeps those the cluster has."""

    namespace: str
    name: str
    kubeconfig: Kubeconfig
    labels: Mapping[str, str] | None
    inbound: Inbound
    forwarder_url: str = ""
    forwarder: bool = True

    @property
    def key(self) -> str:
        """Name the cluster: namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Registered:
    """What came of it."""

    cluster: Cluster
    again: bool
    warnings: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class _Ringing:
    """How the cluster's forwarder is reached, and the Secret that makes it one."""

    record: Mapping[str, str]
    secret: Mapping[str, Any]


def register(here: Installation, wish: Wish) -> Registered:
    """Add a cluster, or renew one: credentials, labels, token and the forwarder's certificate.

    Raises:
        InvalidError: its address is one that this installation does not call.
        UnreachableError: the cluster does not answer; nothing is changed.
        DeniedError: rights are missing; nothing is changed.
    """
    sanitise(wish.kubeconfig.to_dict(), reach=here.reach)
    kube = KubeClient(wish.key, wish.kubeconfig, reach=here.reach)
    try:
        return _register(here, wish, kube)
    finally:
        kube.close()


def _register(here: Installation, wish: Wish, kube: KubeClient) -> Registered:
    kept = here.records.clusters.get(wish.key)
    old = kept.value if kept else None
    now = here.records.clock.now()
    token = entropy.token_urlsafe(_TOKEN_BYTES)
    cluster = Cluster(
        namespace=wish.namespace,
        name=wish.name,
        labels=dict((old.labels if old else {}) if wish.labels is None else wish.labels),
        kubernetes=kube.version(),
        token_digest=hashlib.sha256(token.encode()).hexdigest(),
        registered_at=old.registered_at if old else now,
        credentials=wish.kubeconfig.version,
    )
    resources = watched(kube, here.catalogs.current(), cluster)
    missing = missing_for_watching(kube, resources, ringing=wish.forwarder)
    if missing:
        raise DeniedError(
            f"cannot register cluster '{wish.key}': its credentials lack rights, which the how-to"
            " 'Register a cluster' lists: they " + "; they ".join(missing)
        )
    warnings = [
        f"the credentials {each}: an add-on they may not write fails, and says so"
        for each in missing_for_applying(kube)
    ]
    ringing = _ringing(here, wish, token) if wish.forwarder else None
    if ringing:
        # Only an administrator may bind a role that is not there yet.
        for manifest in (forwarder_role(resources), *forwarder_rights()):
            kube.apply(manifest)
    with undisturbed():
        # From here on the forwarder has a token that only the record makes good.
        if ringing:
            kube.apply(dict(ringing.secret))
        # Stored first: the record names a version that is there.
        stored = json.dumps(wish.kubeconfig.to_dict()).encode()
        here.secrets.put(f"kubeconfig/{wish.key}", stored)
        cluster = replace(cluster, forwarder=dict(ringing.record) if ringing else {})
        here.declare.register(cluster)
    return Registered(cluster, again=old is not None, warnings=warnings)


def _ringing(here: Installation, wish: Wish, token: str) -> _Ringing:
    now = here.records.clock.now()
    names = [_host(wish.forwarder_url)] if wish.forwarder_url else _SERVICE_NAMES
    authority = make_authority(NAME, now=now, validity=_VALIDITY)
    certificate, key = issue(authority, names, now=now, validity=_VALIDITY)
    path = f"/ring/{entropy.token_urlsafe(_PATH_BYTES)}"
    return _Ringing(
        record={
            "url": wish.forwarder_url.rstrip("/"),
            "ca": authority.certificate_pem.decode(),
            "path": path,
        },
        secret=forwarder_secret(
            {
                "ingest-url": wish.inbound.url.rstrip("/"),
                "ingest-ca": wish.inbound.ca,
                "cluster": wish.key,
                "token": token,
                "path": path,
                "tls.crt": certificate.decode(),
                "tls.key": key.decode(),
            }
        ),
    )


def _host(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise InvalidError(
            f"cannot use the forwarder's URL '{url}': API servers call https alone, as in"
            " 'https://10.0.0.5:9443'"
        )
    return parts.hostname


@dataclass(frozen=True)
class Deregistered:
    """What was taken out of the cluster, and what could not be, with the reason."""

    removed: Sequence[str]
    left: str = ""


def deregister(here: Installation, key: str) -> Deregistered:
    """Take a cluster out: what rings in it as far as it answers, then all that is kept of it.

    Raises:
        MissingError: there is no such cluster.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        raise MissingError(
            f"cannot deregister cluster '{key}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    removed: list[str] = []
    left = ""
    try:
        removed.extend(_silence(here, kept.value))
    except BellhopError as error:
        left = str(error)
    with undisturbed():
        here.secrets.delete(f"kubeconfig/{key}")
        here.declare.deregister(key)
    return Deregistered(removed, left)


def _silence(here: Installation, cluster: Cluster) -> Iterator[str]:
    kube = here.access.open(cluster.key, version=cluster.credentials)
    for gvk, namespace in _REMOVED:
        if kube.remove(gvk, namespace, NAME):
            yield f"{gvk.kind} '{NAME}'"
    found = kube.get(_NAMESPACE, "", NAMESPACE)
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    # Somebody else's namespace of that name stays.
    if labels.get("app.kubernetes.io/part-of") == "bellhop" and kube.remove(
        _NAMESPACE, "", NAMESPACE
    ):
        yield f"Namespace '{NAMESPACE}'"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a Ctrl-C wait until the block is done: it must happen as a whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before: Callable[[int, Any], Any] | int | None = signal.signal(
        signal.SIGINT, lambda number, _frame: waiting.append(number)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt
