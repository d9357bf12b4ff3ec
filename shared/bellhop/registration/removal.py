"""Deregistration of a cluster: what sends its events is removed, then all its records.

The cluster need not answer: it may not exist any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress

from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.installation_mark import refuse_taken
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.gvk import GVK
from bellhop.errors import (
    BellhopError,
    CloudDeniedError,
    ConflictError,
    DeniedError,
    MissingError,
    PermanentError,
)
from bellhop.installation import Installation
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import MESSAGING_NAMESPACE, NAME, NAMESPACE
from bellhop.registration.forwarder_pods import DEPLOYMENT
from bellhop.registration.instructions import SECRET, find_entries
from bellhop.registration.record_update import undisturbed, update_cluster
from bellhop.state.cluster import Cluster

BY_HAND = (
    f"remove ValidatingWebhookConfiguration '{NAME}' and Namespace '{NAMESPACE}' there by hand"
)

_RBAC = "rbac.authorization.k8s.io"
_NAMESPACE = GVK("", "v1", "Namespace")
_REMOVED = (
    (GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), ""),
    (GVK(_RBAC, "v1", "ClusterRoleBinding"), ""),
    (GVK(_RBAC, "v1", "ClusterRole"), ""),
    (SECRET, NAMESPACE),
    (GVK(_RBAC, "v1", "RoleBinding"), NAMESPACE),
    (GVK(_RBAC, "v1", "Role"), NAMESPACE),
    (GVK("", "v1", "ServiceAccount"), NAMESPACE),
)

_MESSAGING = (GVK(_RBAC, "v1", "RoleBinding"), GVK(_RBAC, "v1", "Role"))
"""The role and binding for the Secret of the cluster's NATS server, in another namespace."""

_PODS = (DEPLOYMENT, GVK("", "v1", "Service"), GVK("networking.k8s.io", "v1", "NetworkPolicy"))


def read_uid(kube: Kube) -> str:
    """Return the uid of the cluster's kube-system, which is unique; empty if it cannot be read."""
    try:
        manifest = kube.get(_NAMESPACE, "", "kube-system")
    except PermanentError:
        return ""
    return str(((manifest or {}).get("metadata") or {}).get("uid") or "")


def find_uid(here: Installation, cluster: Cluster) -> str:
    """Return the uid of a cluster's registration, or of a resync."""
    return cluster.uid or here.records.health.head(cluster.key).uid


def find_twin(here: Installation, key: str, uid: str) -> Cluster | None:
    """Return the same cluster under another name.

    This reads all clusters in memory. An index by uid would have to be written with each cluster
    and be right after each death, and would save no read: registration reads the catalog, of which
    clusters are one query, for the change fan-out.
    """
    for other in here.catalogs.known().clusters.values():
        if uid and other.key != key and find_uid(here, other) == uid:
            return other
    return None


def remove_sender(
    kube: Kube, key: str, *, uninstall: bool = False, sends: bool = False
) -> Iterator[str]:
    """Remove what sends events in a cluster, the webhook first; yield each removed object.

    The forwarder's pods go with its namespace; if that has another owner, by `uninstall`. A cluster
    that `sends` goes on to send events, in another way.

    Raises:
        ConflictError: its forwarder serves a cluster of another name by now.
    """
    serves = find_entries(kube).get("cluster", key)
    if serves != key:
        raise ConflictError(f"its forwarder serves cluster '{serves[:128]}' by now")
    for gvk, namespace in _REMOVED[sends:]:
        if kube.remove(gvk, namespace, NAME) is not None:
            yield f"{gvk.kind} '{NAME}'"
    yield from _unsubscribe(kube)
    found = kube.get(_NAMESPACE, "", NAMESPACE)
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    # Somebody else's namespace of that name stays.
    if labels.get("app.kubernetes.io/part-of") == "bellhop":
        if kube.remove(_NAMESPACE, "", NAMESPACE) is not None:
            yield f"Namespace '{NAMESPACE}'"
    elif uninstall:
        for gvk in _PODS:
            if kube.remove(gvk, NAMESPACE, NAME) is not None:
                yield f"{gvk.kind} '{NAME}'"


def _unsubscribe(kube: Kube) -> Iterator[str]:
    for gvk in _MESSAGING:
        # Credentials that may not delete it could not have created it.
        with suppress(DeniedError):
            if kube.remove(gvk, MESSAGING_NAMESPACE, NAME) is not None:
                yield f"{gvk.kind} '{MESSAGING_NAMESPACE}/{NAME}'"


def remove_former_sender(here: Installation, cluster: Cluster) -> str:
    """Remove the sender of the former cluster of this name, with the credentials it had.

    Returns a sentence about what is left to do by hand; empty if nothing is.
    """
    place = f"abandoned/{cluster.key}"
    try:
        kubeconfig = sanitise(here.secrets.read(place), reach=here.reach)
        kube = KubeClient(cluster.key, kubeconfig, reach=here.reach)
    except BellhopError as error:
        return _by_hand(error)
    try:
        if read_uid(kube) != cluster.abandoned:
            return _by_hand(MissingError("its address leads to another cluster by now"))
        if find_twin(here, cluster.key, cluster.abandoned) is None:
            refuse_taken(here.records.installations, kube)
            for _ in remove_sender(kube, cluster.key):
                pass
    except ConflictError:
        # The cluster that it serves by now has taken over all objects.
        return ""
    except BellhopError as error:
        return _by_hand(error)
    else:
        return ""
    finally:
        kube.close()


def _by_hand(error: BellhopError) -> str:
    return f"the cluster that had this name before may still send events: {error}; {BY_HAND}"


def store_former_credentials(here: Installation, old: Cluster, stored: bytes) -> None:
    """Store the credentials of the former cluster of a name apart from the new ones, `stored`."""
    if old.managed:
        return
    before = here.secrets.read(f"kubeconfig/{old.key}")
    if before != stored:
        # Else an attempt that lost the race has stored them already.
        here.secrets.put(f"abandoned/{old.key}", before)


def forget_abandoned(here: Installation, key: str) -> Cluster | None:
    """Record that the former cluster of this name needs no cleanup any more; return the cluster."""
    cluster = update_cluster(here, key, lambda found: replace(found, abandoned=""))
    here.secrets.delete(f"abandoned/{key}")
    return cluster


def withdraw(here: Installation, cluster: Cluster) -> None:
    """Delete the kubeconfig of a cluster, and its record."""
    # A cluster of a cloud has no kubeconfig, and functions may not be allowed to delete any.
    with suppress(CloudDeniedError, DeniedError) if cluster.managed else nullcontext():
        here.secrets.delete(f"kubeconfig/{cluster.key}")
    here.declare.deregister(cluster.key)


class Deregistered(Struct, frozen=True):
    """The objects removed from the cluster, and a sentence on those that could not be."""

    removed: Sequence[str]
    left: str = ""


def deregister(
    here: Installation,
    key: str,
    *,
    uninstall: bool = False,
    check: Callable[[Cluster], None] = lambda _: None,
) -> Deregistered:
    """Deregister a cluster: remove its sender as far as it answers, then all its records.

    `uninstall` removes the forwarder's objects even where its namespace stays. `check` gets the
    cluster after these calls, which may take long; an error of it keeps the cluster registered.

    Raises:
        MissingError: there is no such cluster.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        raise MissingError(
            f"cannot deregister cluster '{key}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    cluster = kept.value
    removed: list[str] = []
    left = remove_former_sender(here, cluster) if cluster.abandoned else ""
    try:
        kube = here.access.open(key, version=cluster.credentials)
        refuse_taken(here.records.installations, kube)
        removed.extend(remove_sender(kube, key, uninstall=uninstall))
    except ConflictError as error:
        left = f"its webhook configuration and forwarder were left unchanged: {error}"
    except BellhopError as error:
        left = (
            f"its webhook configuration and forwarder may still exist: {error}; once it"
            f" answers, {BY_HAND}"
        )
    if now := here.records.clusters.get(key):
        check(now.value)
    with undisturbed():
        here.secrets.delete(f"abandoned/{key}")
        withdraw(here, cluster)
    return Deregistered(removed, left)
