"""Names that people type, resolved to clusters, kinds and profiles; names of objects for people.

A stored profile has a name of its own that no other can have. The one that people know, rendered
from profileNameFormat, may change and be refused: it is only read and written for people.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING

from bellhop.core.gvk import GVK, Identity, ObjectKey
from bellhop.core.identity import profile_shown
from bellhop.errors import InvalidError, MissingError, StaleError

if TYPE_CHECKING:
    from bellhop.installation import Installation, InstallationView

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


@cache
def _usual_kinds() -> Mapping[GVK, tuple[str, bool]]:
    """Return kinds that are known without a cluster: their plurals, and whether namespaced."""
    from bellhop.adapters.kube.discovery import BUILT_IN  # noqa: PLC0415 - it loads the client

    return {
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


def suggest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a sentence: the nearest name, or `otherwise` the next action."""
    near = find_nearest(word, known)
    return f"; did you mean '{near}'?" if near else f"; {otherwise}" if otherwise else ""


def find_nearest(word: str, known: Iterable[str]) -> str:
    """Return the nearest name; empty if none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1)), "")


def resolve_cluster(here: Installation, text: str, namespace: str = "") -> str:
    """Return the cluster of NAMESPACE/NAME, or of a name that only one has.

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
    raise MissingError(f"there is no cluster '{asked}'{suggest(asked, names, listed)}")


def require_namespace(here: Installation, namespace: str) -> None:
    """Refuse a namespace without clusters and manifests; the error names the nearest one."""
    known = {"default", *(each.namespace for each in here.records.clusters.all())}
    for kind in ("ConfigMap", "Secret", "Profile", "Set"):
        known.update(name.partition("/")[0] for name in here.records.manifests.names(kind))
    if namespace not in known:
        there = ", ".join(sorted(known))
        raise MissingError(
            f"there is no namespace '{namespace}'"
            f"{suggest(namespace, sorted(known), f'those that are there: {there}')}"
        )


def require_clusters(here: Installation, namespace: str) -> None:
    """Refuse a namespace without a cluster; the error names the nearest one."""
    known = sorted({each.namespace for each in here.records.clusters.all()})
    if namespace not in known:
        listed = "`bellhop get clusters` lists those that are registered"
        hint = suggest(namespace, known, listed)
        raise MissingError(f"there is no cluster in namespace '{namespace}'{hint}")


def resolve_kinds(here: Installation, cluster: str, text: str) -> list[GVK]:
    """Return a kind of a cluster by kind, plural or short name, with or without its group.

    There may be several versions; those that sources name come first. The cluster is not called.

    Raises:
        InvalidError: two groups have such a kind.
        MissingError: no source names such a kind; names the nearest one.
    """
    name, dot, group = text.partition(".")
    called = _SHORT.get(name.lower(), name).lower()
    found: dict[GVK, None] = {}
    words: dict[str, None] = {}
    for gvk, plural in _list_kinds(here, cluster):
        words[gvk.kind] = None
        names = {gvk.kind.lower(), plural, f"{gvk.kind.lower()}s"}
        if called in names and (not dot or group == gvk.group):
            found[gvk] = None
    groups = sorted({gvk.group for gvk in found})
    if len(groups) > 1:
        several = " or ".join(f"{name}.{each}" if each else f"{name}." for each in groups)
        raise InvalidError(f"cannot determine which kind '{text}' is; write {several}")
    if not found:
        raise MissingError(
            f"no EventSource names a kind '{text}', and it is not one of the usual ones"
            f"{suggest(_SHORT.get(name.lower(), name), words)}"
        )
    return list(found)


def _list_kinds(here: Installation, cluster: str) -> Iterator[tuple[GVK, str]]:
    """Yield known kinds with their plurals, which may be empty."""
    usual = {gvk: plural for gvk, (plural, _) in _usual_kinds().items()}
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


def is_namespaced(gvk: GVK) -> bool | None:
    """Return whether a usual kind is in namespaces; None for any other kind."""
    return _usual_kinds()[gvk][1] if gvk in _usual_kinds() else None


class ProfileNames:
    """The displayed names of profiles whose trigger has a profileNameFormat."""

    def __init__(self, here: InstallationView) -> None:
        self._here = here

    def shown(self, name: str) -> str:
        return self._titles.get(name, name)

    def with_kind(self, name: str) -> str:
        return profile_shown(self.shown(name))

    @cached_property
    def _titles(self) -> dict[str, str]:
        naming = [
            name
            for name, trigger in self._here.catalogs.known().triggers.items()
            if trigger.spec.profile_name_format
        ]
        return {
            each.name: each.title
            for trigger in naming
            for each in self._here.records.profiles.heads(trigger)
            if each.title
        }


def resolve_trigger(here: Installation, word: str) -> str:
    """Return the trigger of that name if no profile has that name; else nothing."""
    triggers = here.catalogs.known().triggers
    if word not in triggers or resolve_profile(here, word) != word:
        return ""
    if here.records.manifests.has("ClusterProfile", "", word) or here.records.profiles.head(
        "", "", word
    ):
        return ""
    made = any(each.name == word for name in triggers for each in here.records.profiles.heads(name))
    return "" if made else word


def list_trigger_profiles(here: Installation, trigger: str, cluster: str = "") -> list[str]:
    """Return the stored names of the profiles of a trigger that have contents.

    With a cluster only those that are deployed to it, or being removed from it.

    Raises:
        MissingError: there are none.
    """
    names = [
        each.name
        for each in here.records.profiles.heads(trigger)
        if each.number and (not cluster or each.may_name(cluster))
    ]
    if not names:
        raise MissingError(
            f"trigger '{trigger}' has made no profile that holds anything"
            f"{f' for {cluster!r}' if cluster else ''}; `bellhop describe"
            f" eventtrigger {trigger}` says why"
        )
    return names


def resolve_profile(here: Installation, word: str) -> str:
    """Return the stored name of the profile with that displayed name; the word itself if none."""
    kept = here.records.titles.get("ClusterProfile", word) if word else None
    if kept is None:
        return word
    title = kept.value
    try:
        head = here.records.profiles.head(title.trigger, title.cluster, title.profile)
    except MissingError:
        return title.profile
    return title.profile if head and ("ClusterProfile", word) in head.value.titles else word


def object_name(key: ObjectKey | Identity | str) -> str:
    """Return the name of an object for people: `Service default/web`."""
    if isinstance(key, str):
        if not key:
            return ""
        key = ObjectKey.parse(key)
    if isinstance(key, ObjectKey):
        key = key.identity
    place = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return f"{key.kind} {place}"
