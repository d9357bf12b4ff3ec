"""Which cluster one really is, and how it is made to ring no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.installation_mark import refuse_taken
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.gvk import GVK
from bellhop.errors import (
    BellhopError,
    ConflictError,
    DeniedError,
    MissingError,
    PermanentError,
)
from bellhop.installation.installation import Installation
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import MESSAGING_NAMESPACE, NAME, NAMESPACE
from bellhop.registration.instructions import SECRET, entries_in
from bellhop.state.record import Cluster

BY_HAND = (
    f"remove ValidatingWebhookConfiguration '{NAME}' and Namespace '{NAMESPACE}' there by hand"
)

_RBAC = "rbac.authorization.k8s.io"
_NAMESPACE = GVK("", "v1", "Namespace")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
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
"""What lets it read, in another's namespace, where the cluster's NATS server is."""

_PODS = (DEPLOYMENT, GVK("", "v1", "Service"), GVK("networking.k8s.io", "v1", "NetworkPolicy"))


def identify(kube: Kube) -> str:
    """Return the uid of the cluster's kube-system, which no two share; empty if it is not told."""
    try:
        manifest = kube.get(_NAMESPACE, "", "kube-system")
    except PermanentError:
        return ""
    return str(((manifest or {}).get("metadata") or {}).get("uid") or "")


def known_uid(here: Installation, cluster: Cluster) -> str:
    """Return the uid that a cluster was registered with, or that a sweep has met."""
    return cluster.uid or here.records.health.head(cluster.key).uid


def twin(here: Installation, key: str, uid: str) -> Cluster | None:
    """Find the cluster that is registered under another name and is this one.

    It goes through all clusters, as they are in memory. An index by uid would have to be written
    with each cluster and be right after each death, and would spare no read: registering reads
    the catalog, of which clusters are one query, to say what the change touches.
    """
    for other in here.catalogs.known().clusters.values():
        if uid and other.key != key and known_uid(here, other) == uid:
            return other
    return None


def silence(kube: Kube, key: str, *, uninstall: bool = False, rings: bool = False) -> Iterator[str]:
    """Remove what makes a cluster ring, what rings first; yield each thing that was there.

    The forwarder's pods go with its namespace; where that is somebody else's, by `uninstall`. One
    that `rings` goes on to do so, in another way.

    Raises:
        ConflictError: its forwarder serves a cluster of another name by now.
    """
    serves = entries_in(kube).get("cluster", key)
    if serves != key:
        raise ConflictError(f"its forwarder serves cluster '{serves[:128]}' by now")
    for gvk, namespace in _REMOVED[rings:]:
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
        # Who may not take it away could not put it there.
        with suppress(DeniedError):
            if kube.remove(gvk, MESSAGING_NAMESPACE, NAME) is not None:
                yield f"{gvk.kind} '{MESSAGING_NAMESPACE}/{NAME}'"


def leave_behind(here: Installation, cluster: Cluster) -> str:
    """Silence the cluster that had this name before, with the credentials it had.

    Returns a sentence about what has to be done by hand; empty if nothing has.
    """
    place = f"abandoned/{cluster.key}"
    try:
        kubeconfig = sanitise(here.secrets.read(place), reach=here.reach)
        kube = KubeClient(cluster.key, kubeconfig, reach=here.reach)
    except BellhopError as error:
        return _by_hand(error)
    try:
        if identify(kube) != cluster.abandoned:
            return _by_hand(MissingError("its address leads to another cluster by now"))
        if twin(here, cluster.key, cluster.abandoned) is None:
            refuse_taken(here.records.installations, kube)
            for _ in silence(kube, cluster.key):
                pass
    except ConflictError:
        # Whoever it serves by now has taken over all that was ours.
        return ""
    except BellhopError as error:
        return _by_hand(error)
    else:
        return ""
    finally:
        kube.close()


def _by_hand(error: BellhopError) -> str:
    return f"the cluster that had this name before may still send events: {error}; {BY_HAND}"
