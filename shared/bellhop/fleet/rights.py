"""What Bellhop may have to do in a cluster, and which of it its credentials may not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from bellhop.engine.catalog import Catalog
from bellhop.engine.wiring import NAMESPACE
from bellhop.model.gvk import GVK, Resource
from bellhop.model.record import Cluster

Check = tuple[str, str, str, str, str]
"""Verb, group, resource, subresource, namespace."""

_WRITE = ("create", "patch", "delete")
_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_RINGING = (
    ("", "namespaces", ""),
    (_ADMISSION, "validatingwebhookconfigurations", ""),
    (_RBAC, "clusterroles", ""),
    (_RBAC, "clusterrolebindings", ""),
    ("", "secrets", NAMESPACE),
    ("", "serviceaccounts", NAMESPACE),
    (_RBAC, "roles", NAMESPACE),
    (_RBAC, "rolebindings", NAMESPACE),
)
_INSTALLING = (
    ("", "services", NAMESPACE),
    ("apps", "deployments", NAMESPACE),
    ("networking.k8s.io", "networkpolicies", NAMESPACE),
)
_ANY = "*"


class Served(Protocol):
    """A cluster that can be asked what it serves."""

    def resource(self, gvk: GVK) -> Resource | None:
        """Find the resource that serves a kind."""
        ...


class Examined(Served, Protocol):
    """A cluster that can be asked what its credentials may do."""

    def rights(self, checks: Sequence[Check]) -> Sequence[Check]:
        """Return those rights that are missing."""
        ...


def watched(kube: Served, catalog: Catalog, cluster: Cluster) -> list[Resource]:
    """Return what the sources name that would be in force in a cluster with these labels."""
    future = Catalog(
        catalog.revision, [cluster], catalog.sources.values(), catalog.triggers.values(), ()
    )
    found = (kube.resource(gvk) for gvk in future.kinds_in(cluster.key))
    return [resource for resource in found if resource is not None]


def missing_for_watching(
    kube: Examined, resources: Sequence[Resource], *, ringing: bool, installing: bool = False
) -> list[str]:
    """Tell which rights are missing that registration cannot do without, a sentence each."""
    pods = _INSTALLING if installing else ()
    checks: list[Check] = [
        (verb, resource.gvk.group, resource.plural, "", "")
        for resource in resources
        for verb in ("get", "list")
    ]
    checks += [
        (verb, group, resource, "", namespace)
        for needed, verbs in ((_RINGING if ringing else (), _WRITE), (pods, ("get", *_WRITE)))
        for group, resource, namespace in needed
        for verb in verbs
    ]
    return _sentences(kube.rights(checks))


def missing_for_applying(kube: Examined) -> list[str]:
    """Tell which rights over all kinds are missing; narrower ones may well be enough."""
    return _sentences(kube.rights([(verb, _ANY, _ANY, "", "") for verb in ("get", *_WRITE)]))


def _sentences(missing: Iterable[Check]) -> list[str]:
    """Join the verbs that are missing for one resource into one sentence."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for verb, group, resource, _, namespace in missing:
        if resource == _ANY:
            what = "objects of every kind"
        else:
            what = f"{resource}.{group}" if group else resource
        verbs.setdefault((what, namespace), []).append(verb)
    return [
        f"may not {_joined(each)} {what}" + (f" in namespace '{namespace}'" if namespace else "")
        for (what, namespace), each in verbs.items()
    ]


def _joined(verbs: Sequence[str]) -> str:
    return verbs[0] if len(verbs) == 1 else f"{', '.join(verbs[:-1])} or {verbs[-1]}"
