"""Which cluster, and which of its kinds, a user means; a typing mistake is told with a guess."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from bellhop.adapters.kube.builtin import BUILT_IN
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError, MissingError, StaleError

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation

_SHORT = {
    "cj": "CronJob",
    "cm": "ConfigMap",
    "crd": "CustomResourceDefinition",
    "deploy": "Deployment",
    "ds": "DaemonSet",
    "ep": "Endpoints",
    "hpa": "HorizontalPodAutoscaler",
    "ing": "Ingress",
    "netpol": "NetworkPolicy",
    "no": "Node",
    "ns": "Namespace",
    "po": "Pod",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "quota": "ResourceQuota",
    "rs": "ReplicaSet",
    "sa": "ServiceAccount",
    "sts": "StatefulSet",
    "svc": "Service",
}
"""Short names that fingers know from kubectl."""

_USUAL = {
    **{gvk: (each.plural, each.namespaced) for gvk, each in BUILT_IN.items()},
    GVK("", "v1", "Node"): ("nodes", False),
    GVK("", "v1", "PersistentVolume"): ("persistentvolumes", False),
    GVK("", "v1", "Pod"): ("pods", True),
    GVK("", "v1", "ServiceAccount"): ("serviceaccounts", True),
    GVK("batch", "v1", "CronJob"): ("cronjobs", True),
    GVK("discovery.k8s.io", "v1", "EndpointSlice"): ("endpointslices", True),
    GVK("networking.k8s.io", "v1", "NetworkPolicy"): ("networkpolicies", True),
    GVK("policy", "v1", "PodDisruptionBudget"): ("poddisruptionbudgets", True),
}
"""Kinds that are known without asking: their plurals, and whether they are in namespaces."""


def guess(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """End a sentence with what was probably meant; `otherwise` says what to do where nothing is."""
    near = meant(word, known)
    return f"; did you mean '{near}'?" if near else f"; {otherwise}" if otherwise else ""


def meant(word: str, known: Iterable[str]) -> str:
    """Find what was probably meant; empty if nothing looks like it."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1)), "")


def cluster_named(here: Installation, text: str, namespace: str = "") -> str:
    """Find a registered cluster by NAMESPACE/NAME, or by a name that only one has.

    Raises:
        InvalidError: the name is in two namespaces, or names another one than was given.
        MissingError: there is no such cluster; names the nearest one.
    """
    if "/" in text:
        place, _, name = text.partition("/")
        if namespace not in ("", place):
            raise InvalidError(f"'{text}' and --namespace {namespace} name two namespaces")
    else:
        place, name = namespace, text
    if place and here.records.clusters.get(f"{place}/{name}"):
        return f"{place}/{name}"
    known = [each.key for each in here.records.clusters.all()]
    found = [key for key in known if not place and key.partition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidError(
            f"cannot determine which cluster '{text}' is: {', '.join(sorted(found))} have that"
            " name;"
            " write NAMESPACE/NAME"
        )
    asked = f"{place}/{name}" if place else name
    names = known if place else [each.partition("/")[2] for each in known]
    listed = "`bellhop get clusters` lists those that are registered"
    raise MissingError(f"there is no cluster '{asked}'{guess(asked, names, listed)}")


def require_namespace(here: Installation, namespace: str) -> None:
    """Refuse a namespace in which there is neither a cluster nor anything that was applied.

    Raises:
        MissingError: it names the nearest one.
    """
    known = {"default", *(each.namespace for each in here.records.clusters.all())}
    for kind in ("ConfigMap", "Secret", "Profile", "Set"):
        known.update(name.partition("/")[0] for name in here.records.manifests.names(kind))
    if namespace not in known:
        there = ", ".join(sorted(known))
        raise MissingError(
            f"there is no namespace '{namespace}'"
            f"{guess(namespace, sorted(known), f'those that are there: {there}')}"
        )


def require_clusters(here: Installation, namespace: str) -> None:
    """Refuse a namespace without a cluster.

    Raises:
        MissingError: it names the nearest one.
    """
    known = sorted({each.namespace for each in here.records.clusters.all()})
    if namespace not in known:
        listed = "`bellhop get clusters` lists those that are registered"
        hint = guess(namespace, known, listed)
        raise MissingError(f"there is no cluster in namespace '{namespace}'{hint}")


def kinds_named(here: Installation, cluster: str, text: str) -> list[GVK]:
    """Find a kind of a cluster by kind, plural or short name, with or without its group.

    There may be several versions of it; those that sources name come first. The cluster is not
    asked: known are the kinds that sources name, those that count in it, and the usual ones.

    Raises:
        InvalidError: two groups have such a kind.
        MissingError: nobody names such a kind; names the nearest one.
    """
    name, dot, group = text.partition(".")
    wanted = _SHORT.get(name.lower(), name).lower()
    found: dict[GVK, None] = {}
    words: dict[str, None] = {}
    for gvk, plural in _kinds(here, cluster):
        words[gvk.kind] = None
        called = {gvk.kind.lower(), plural, f"{gvk.kind.lower()}s"}
        if wanted in called and (not dot or group == gvk.group):
            found[gvk] = None
    groups = sorted({gvk.group for gvk in found})
    if len(groups) > 1:
        several = " or ".join(f"{name}.{each}" if each else f"{name}." for each in groups)
        raise InvalidError(f"cannot determine which kind '{text}' is; write {several}")
    if not found:
        raise MissingError(
            f"no EventSource names a kind '{text}', and it is not one of the usual ones"
            f"{guess(_SHORT.get(name.lower(), name), words)}"
        )
    return list(found)


def _kinds(here: Installation, cluster: str) -> Iterator[tuple[GVK, str]]:
    """Yield the kinds that are known, each with its plural where that is known, too."""
    usual = {gvk: plural for gvk, (plural, _) in _USUAL.items()}
    try:
        gate = here.records.gates.get(cluster)
    except StaleError:
        gate = None
    for watched in gate.value.kinds if gate else ():
        yield watched.gvk, watched.plural or usual.get(watched.gvk, "")
    for source in here.catalogs.known().sources.values():
        for gvk in sorted(source.kinds):
            yield gvk, usual.get(gvk, "")
    yield from usual.items()


def scope_of(gvk: GVK) -> bool | None:
    """Say whether a usual kind is in namespaces; None of one that is not known."""
    return _USUAL[gvk][1] if gvk in _USUAL else None
